#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/row_sums.h"

namespace plumbline::cuda {

absl::Status SumAllRows(cudaStream_t stream, const Tensor& values, double* run_sums,
                        const Tensor& to) {
  const int64_t rows = values.batch * values.rows;
  if (values.dtype == DType::kBF16) {
    return SumColumns(stream, rows, RowValues<bf16>{View<const bf16>(values)}, run_sums, to,
                      "row sums");
  }
  return SumColumns(stream, rows, RowValues<float>{View<const float>(values)}, run_sums, to,
                    "row sums");
}

int64_t RowSumValues(const Tensor& values) {
  return ColumnSumValues(values.batch * values.rows, values.width);
}

}  // namespace plumbline::cuda
