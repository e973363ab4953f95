// Sums over rows, column by column, in float64 and in one order, rounded once: the gradients of
// vector parameters in the golden and the provider.
//
// Order: rows are cut into runs of kSumRun; a run's rows are added one after another from zero, and
// then the runs' sums one after another. It depends on the number of rows alone.
#ifndef PLUMBLINE_KERNELS_CUDA_COLUMN_SUMS_CUH_
#define PLUMBLINE_KERNELS_CUDA_COLUMN_SUMS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::cuda {

inline constexpr int64_t kSumRun = 256;
inline constexpr int kSumColumns = 128;

inline int64_t SumRuns(int64_t rows) { return (rows + kSumRun - 1) / kSumRun; }

// Values of float64 that SumColumns() needs as its scratch.
inline int64_t ColumnSumValues(int64_t rows, int64_t width) { return SumRuns(rows) * width; }

template <typename Contribution>
__global__ void __launch_bounds__(kSumColumns)
    SumRunsKernel(int64_t rows, int64_t width, Contribution contribution, double* run_sums) {
  const int64_t column = int64_t{blockIdx.y} * kSumColumns + threadIdx.x;
  if (column >= width) return;
  const int64_t first = int64_t{blockIdx.x} * kSumRun;
  const int64_t end = min(first + kSumRun, rows);
  double sum = 0;
#pragma unroll 8
  for (int64_t row = first; row < end; ++row) {
    sum += static_cast<double>(contribution(row, column));
  }
  run_sums[int64_t{blockIdx.x} * width + column] = sum;
}

template <typename T>
__global__ void __launch_bounds__(kSumColumns)
    AddSumRunsKernel(int64_t runs, int64_t width, const double* run_sums, T* to) {
  const int64_t column = int64_t{blockIdx.x} * kSumColumns + threadIdx.x;
  if (column >= width) return;
  double sum = 0;
#pragma unroll 8
  for (int64_t run = 0; run < runs; ++run) sum += run_sums[run * width + column];
  // By way of float32, as the sum that it stands for.
  to[column] = RoundTo<T>(static_cast<float>(sum));
}

// Enqueued: to(1, 1, width), bfloat16 or float32, = the sum of contribution(row, column) over
// `rows` rows. `run_sums` holds ColumnSumValues(rows, width) values. `name` stands in errors.
template <typename Contribution>
absl::Status SumColumns(cudaStream_t stream, int64_t rows, const Contribution& contribution,
                        double* run_sums, const Tensor& to, const char* name) {
  const int64_t width = to.width;
  if (width == 0) return absl::OkStatus();
  const unsigned column_blocks = static_cast<unsigned>((width + kSumColumns - 1) / kSumColumns);
  if (rows > 0) {
    SumRunsKernel<<<dim3(static_cast<unsigned>(SumRuns(rows)), column_blocks), kSumColumns, 0,
                    stream>>>(rows, width, contribution, run_sums);
  }
  if (to.dtype == DType::kBF16) {
    AddSumRunsKernel<<<column_blocks, kSumColumns, 0, stream>>>(SumRuns(rows), width, run_sums,
                                                                static_cast<bf16*>(to.data));
  } else {
    AddSumRunsKernel<<<column_blocks, kSumColumns, 0, stream>>>(SumRuns(rows), width, run_sums,
                                                                static_cast<float*>(to.data));
  }
  return LaunchStatus(name);
}

// The contribution of a bias: the values of a tensor's rows, item after item.
template <typename T>
struct RowValues {
  View<const T> values;

  __device__ float operator()(int64_t row, int64_t column) const {
    return Widen(values.FlatRow(row)[column]);
  }
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_COLUMN_SUMS_CUH_
