#ifndef PLUMBLINE_KERNELS_CUDA_ROW_SUMS_H_
#define PLUMBLINE_KERNELS_CUDA_ROW_SUMS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::cuda {

// Enqueued: to(1, 1, width) = the sum of the rows of all batch items of `values`, each bfloat16 or
// float32: the gradient of a bias. Order and rounding: column_sums.cuh. `run_sums` holds
// RowSumValues(values) values.
absl::Status SumAllRows(cudaStream_t stream, const Tensor& values, double* run_sums,
                        const Tensor& to);
int64_t RowSumValues(const Tensor& values);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ROW_SUMS_H_
