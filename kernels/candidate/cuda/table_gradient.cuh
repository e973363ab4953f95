// Gradient of a table whose rows were gathered by an index:
//   grad[index[row]] = round(sum over (item, row) of contribution(item, row))
// Order: a float32 sum from zero over the rows in order, batch item after item; rounded to bfloat16
// once. One thread sums a column from the first row to the last; where everything is aligned, the
// other threads of its block bring it the contributions. Rows that no index names become zeros. The
// order is that of the candidate on a CPU.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
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

// What a contribution reads of one row: chunks of one or two tensors, and a value of the row.
struct ContributionInputs {
  Chunk first;
  Chunk second;
  float row_value;
};

// Rows that a block's threads bring at once, a chunk each; and how many such tiles ahead they read.
inline constexpr int kTileRows = 64;
inline constexpr int kTileChunks = kTableColumns / kChunkValues;
inline constexpr int kBringers = kTileRows * kTileChunks;
inline constexpr int kTilesAhead = 3;

// A block has kTableColumns columns. Its last warp sums, the others bring contributions through two
// tiles in shared memory.
template <typename Contribution>
__global__ void __launch_bounds__(kBringers + 32)
    SumChunksIntoTableKernel(int64_t batch, cuda::View<const int64_t> index,
                             cuda::View<cuda::bf16> grad, int64_t width, float* sums,
                             Contribution contribution) {
  __shared__ float values[2][kTileRows][kTableColumns];
  __shared__ int places[2][kTileRows];
  const bool is_summer = threadIdx.x >= kBringers;
  const int64_t flat_rows = batch * index.rows;
  const int64_t tiles = (flat_rows + kTileRows - 1) / kTileRows;
  const int64_t first_column = int64_t{blockIdx.x} * kTableColumns;

  // Of a thread that brings: its row of a tile, and its chunk.
  const int tile_row = threadIdx.x / kTileChunks;
  const int64_t chunk_column = first_column + threadIdx.x % kTileChunks * kChunkValues;
  const bool brings = !is_summer && chunk_column < width;
  ContributionInputs inputs[kTilesAhead] = {};
  const auto read = [&](int64_t tile, ContributionInputs& to) {
    const int64_t flat = tile * kTileRows + tile_row;
    if (brings && flat < flat_rows) {
      to = contribution.Read(flat / index.rows, flat % index.rows, chunk_column);
    }
  };
  const auto write = [&](int64_t tile, const ContributionInputs& from) {
    if (is_summer || tile >= tiles) return;
    const int64_t flat = tile * kTileRows + tile_row;
    if (brings && flat < flat_rows) {
      float contributions[kChunkValues];
      contribution.Compute(from, chunk_column, contributions);
      const int column = static_cast<int>(chunk_column - first_column);
#pragma unroll
      for (int i = 0; i < kChunkValues; ++i)
        values[tile % 2][tile_row][column + i] = contributions[i];
    }
    if (threadIdx.x % kTileChunks == 0 && flat < flat_rows) {
      places[tile % 2][tile_row] = static_cast<int>(*index.Row(flat % index.rows));
    }
  };

  // Of a thread that sums: its column. The sum of the table row that was added to last stays in a
  // register.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = first_column + lane;
  const bool sums_column = is_summer && column < width;
  int current = 0;
  float sum = 0;
  const auto move_to = [&](int place) {
    if (place == current) return;
    if (sums_column) {
      sums[current * width + column] = sum;
      sum = sums[place * width + column];
    }
    current = place;
  };
  if (sums_column) {
    for (int64_t row = 0; row < grad.rows; ++row) sums[row * width + column] = 0;
  }

#pragma unroll
  for (int i = 0; i < kTilesAhead; ++i) read(i, inputs[i]);
  for (int64_t first = 0; first <= tiles; first += kTilesAhead) {
#pragma unroll
    for (int i = 0; i < kTilesAhead; ++i) {
      // Tile `first + i` is written while the one before it is summed.
      const int64_t tile = first + i;
      write(tile, inputs[i]);
      read(tile + kTilesAhead, inputs[i]);
      if (is_summer && tile > 0 && tile <= tiles) {
        const int64_t summed = tile - 1;
        const int rows = static_cast<int>(min(int64_t{kTileRows}, flat_rows - summed * kTileRows));
        const auto& tile_values = values[summed % 2];
        const auto& tile_places = places[summed % 2];
        // Where all rows of a tile go to one row of the table, as nearly always, nothing lies
        // between the additions.
        bool is_one_place = true;
        for (int row = lane; row < rows; row += 32) {
          is_one_place &= tile_places[row] == tile_places[0];
        }
        if (__all_sync(0xFFFFFFFF, is_one_place)) {
          move_to(tile_places[0]);
#pragma unroll 16
          for (int row = 0; row < rows; ++row) sum += tile_values[row][lane];
        } else {
          for (int row = 0; row < rows; ++row) {
            move_to(tile_places[row]);
            sum += tile_values[row][lane];
          }
        }
      }
      __syncthreads();
    }
  }
  if (!sums_column) return;
  sums[current * width + column] = sum;
  for (int64_t row = 0; row < grad.rows; ++row) {
    grad.Row(row)[column] = cuda::RoundToBf16(sums[row * width + column]);
  }
}

// `contribution(item, row, table_row, column)` gives one value; where `aligned`, Read(item, row,
// column) and Compute(inputs, column, values) give a chunk of them. `grad` is bfloat16, (1, table
// rows, width), of any row stride; `sums` holds grad.rows * grad.width floats.
template <typename Contribution>
absl::Status SumIntoTable(cudaStream_t stream, int64_t batch, const Tensor& index,
                          const Tensor& grad, float* sums, const Contribution& contribution,
                          bool aligned) {
  if (grad.rows == 0) return absl::OkStatus();
  if (aligned && grad.width % kChunkValues == 0) {
    SumChunksIntoTableKernel<<<static_cast<unsigned>((grad.width + kTableColumns - 1) /
                                                     kTableColumns),
                               kBringers + 32, 0, stream>>>(batch, cuda::View<const int64_t>(index),
                                                            cuda::View<cuda::bf16>(grad),
                                                            grad.width, sums, contribution);
    return LaunchStatus("candidate table gradient");
  }
  const unsigned blocks = static_cast<unsigned>((grad.width + kTableColumns - 1) / kTableColumns);
  SumIntoTableKernel<<<blocks, kTableColumns, 0, stream>>>(batch, cuda::View<const int64_t>(index),
                                                           cuda::View<cuda::bf16>(grad), grad.width,
                                                           sums, contribution);
  return LaunchStatus("candidate table gradient");
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_TABLE_GRADIENT_CUH_
