#include "kernels/candidate/cuda/parameter_gradient.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::View;

constexpr int kColumns = 32;
constexpr int kPairs = 32;  // pairs of runs that a block adds at once

// A block has kColumns columns. Its levels of the tree are apart by a barrier.
template <typename T>
__global__ void __launch_bounds__(kColumns* kPairs)
    AddRunsKernel(int64_t rows, int64_t runs, int64_t width, float* run_sums, T* grad) {
  const int64_t column = int64_t{blockIdx.x} * kColumns + threadIdx.x;
  const bool inside = column < width;
  if (rows == 0 && inside && threadIdx.y == 0) run_sums[column] = 0;
  for (int64_t distance = 1; distance < runs; distance *= 2) {
    for (int64_t run = 2 * distance * threadIdx.y; run + distance < runs;
         run += 2 * distance * kPairs) {
      if (inside) run_sums[run * width + column] += run_sums[(run + distance) * width + column];
    }
    __syncthreads();
  }
  if (inside && threadIdx.y == 0) grad[column] = cuda::RoundTo<T>(run_sums[column]);
}

template <typename T>
__global__ void __launch_bounds__(128)
    SumRunKernel(View<const T> values, int64_t flat_rows, int64_t width, float* run_sums) {
  const int64_t column = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const int64_t begin = int64_t{blockIdx.x} * kRowsPerRun;
  const int64_t end = min(begin + kRowsPerRun, flat_rows);
  float sum = 0;
#pragma unroll 8
  for (int64_t row = begin; row < end; ++row) sum += cuda::Widen(values.FlatRow(row)[column]);
  run_sums[int64_t{blockIdx.x} * width + column] = sum;
}

}  // namespace

absl::Status AddRuns(cudaStream_t stream, int64_t rows, float* run_sums, const Tensor& grad) {
  const unsigned blocks = static_cast<unsigned>((grad.width + kColumns - 1) / kColumns);
  const dim3 threads(kColumns, kPairs);
  if (grad.dtype == DType::kBF16) {
    AddRunsKernel<<<blocks, threads, 0, stream>>>(rows, RunCount(rows), grad.width, run_sums,
                                                  static_cast<bf16*>(grad.data));
  } else {
    AddRunsKernel<<<blocks, threads, 0, stream>>>(rows, RunCount(rows), grad.width, run_sums,
                                                  static_cast<float*>(grad.data));
  }
  return LaunchStatus("candidate parameter gradient");
}

absl::Status SumRows(cudaStream_t stream, const Tensor& values, float* run_sums,
                     const Tensor& grad) {
  const int64_t rows = values.batch * values.rows;
  if (rows > 0) {
    const dim3 blocks(static_cast<unsigned>(RunCount(rows)),
                      static_cast<unsigned>((values.width + 127) / 128));
    if (values.dtype == DType::kBF16) {
      SumRunKernel<<<blocks, 128, 0, stream>>>(View<const bf16>(values), rows, values.width,
                                               run_sums);
    } else {
      SumRunKernel<<<blocks, 128, 0, stream>>>(View<const float>(values), rows, values.width,
                                               run_sums);
    }
    const absl::Status launched = LaunchStatus("candidate row sums");
    if (!launched.ok()) return launched;
  }
  return AddRuns(stream, rows, run_sums, grad);
}

}  // namespace plumbline::candidate_cuda
