// Gradient of a table whose rows were gathered by an index:
//   grad[index[row]] = round(sum over (item, row) of contribution(item, row))
// Order: a float32 sum from zero over the rows in order, batch item after item; rounded to bfloat16
// once. One thread sums a column from the first row to the last. Rows that no index names become
// zeros. The order is that of the candidate on a CPU.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {

// Columns of a block. Few, so that a table of 5376 columns is spread over the whole card.
inline constexpr int kTableColumns = 32;
// Rows whose contributions a thread computes at once, so that their loads overlap.
inline constexpr int kTableRowsAtOnce = 16;

template <typename Contribution>
__global__ void __launch_bounds__(kTableColumns)
    SumIntoTableKernel(int64_t batch, cuda::View<const int64_t> index, cuda::View<cuda::bf16> grad,
                       int64_t width, float* sums, Contribution contribution) {
  const int64_t column = int64_t{blockIdx.x} * kTableColumns + threadIdx.x;
  if (column >= width) return;
  for (int64_t row = 0; row < grad.rows; ++row) sums[row * width + column] = 0;
  // The sum of the table row that was added to last stays in a register.
  int64_t current = 0;
  float sum = 0;
  for (int64_t item = 0; item < batch; ++item) {
    for (int64_t first = 0; first < index.rows; first += kTableRowsAtOnce) {
      float values[kTableRowsAtOnce];
      int64_t places[kTableRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kTableRowsAtOnce; ++i) {
        const int64_t row = min(first + i, index.rows - 1);
        places[i] = *index.Row(row);
        values[i] = contribution(item, row, places[i], column);
      }
#pragma unroll
      for (int i = 0; i < kTableRowsAtOnce; ++i) {
        if (first + i >= index.rows) break;
        if (places[i] != current) {
          sums[current * width + column] = sum;
          current = places[i];
          sum = sums[current * width + column];
        }
        sum += values[i];
      }
    }
  }
  sums[current * width + column] = sum;
  for (int64_t row = 0; row < grad.rows; ++row) {
    grad.Row(row)[column] = cuda::RoundToBf16(sums[row * width + column]);
  }
}

// `contribution(item, row, table_row, column)` gives one value. `grad` is bfloat16, (1, table rows,
// width), of any row stride; `sums` holds grad.rows * grad.width floats.
template <typename Contribution>
absl::Status SumIntoTable(cudaStream_t stream, int64_t batch, const Tensor& index,
                          const Tensor& grad, float* sums, const Contribution& contribution) {
  if (grad.rows == 0) return absl::OkStatus();
  const unsigned blocks = static_cast<unsigned>((grad.width + kTableColumns - 1) / kTableColumns);
  SumIntoTableKernel<<<blocks, kTableColumns, 0, stream>>>(batch, cuda::View<const int64_t>(index),
                                                           cuda::View<cuda::bf16>(grad), grad.width,
                                                           sums, contribution);
  return LaunchStatus("candidate table gradient");
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_
