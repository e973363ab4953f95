// Gradient of a table whose rows were gathered by an index:
//   grad[index[row]] = sum over (item, row) of contribution(item, row)
// Order: float64; of the rows of all items that name a table row, kTableThreads threads take every
// kTableThreads-th row each, ascending, and their sums are added one after another; rounded once.
// Rows that no index names become zeros.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CUDA_TABLE_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_GOLDEN_CUDA_TABLE_GRADIENT_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"

namespace plumbline::golden_cuda {

inline constexpr int kTableColumns = 32;
inline constexpr int kTableThreads = 16;

// Block (columns, table row).
template <typename Contribution>
__global__ void __launch_bounds__(kTableColumns* kTableThreads)
    SumIntoTableKernel(int64_t batch, cuda::View<const int64_t> index, cuda::View<float> grad,
                       int64_t width, Contribution contribution) {
  __shared__ double sums[kTableThreads][kTableColumns];
  const int64_t column = int64_t{blockIdx.x} * kTableColumns + threadIdx.x;
  const int64_t table_row = blockIdx.y;
  double sum = 0;
  if (column < width) {
    for (int64_t item = 0; item < batch; ++item) {
      for (int64_t row = threadIdx.y; row < index.rows; row += kTableThreads) {
        if (*index.Row(row) == table_row) sum += contribution(item, row, table_row, column);
      }
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int i = 1; i < kTableThreads; ++i) sum += sums[i][threadIdx.x];
  grad.Row(table_row)[column] = static_cast<float>(sum);
}

// Enqueued. `contribution(item, row, table_row, column)` gives one value in float64; `grad` is
// float32, (1, table rows, width), of any row stride.
template <typename Contribution>
absl::Status SumIntoTable(cudaStream_t stream, int64_t batch, const Tensor& index,
                          const Tensor& grad, const Contribution& contribution) {
  if (grad.NumElements() == 0) return absl::OkStatus();
  const dim3 blocks(static_cast<unsigned>((grad.width + kTableColumns - 1) / kTableColumns),
                    static_cast<unsigned>(grad.rows));
  SumIntoTableKernel<<<blocks, dim3(kTableColumns, kTableThreads), 0, stream>>>(
      batch, cuda::View<const int64_t>(index), cuda::View<float>(grad), grad.width, contribution);
  return LaunchStatus("golden table gradient");
}

}  // namespace plumbline::golden_cuda

#endif  // PLUMBLINE_KERNELS_GOLDEN_CUDA_TABLE_GRADIENT_CUH_
