// The gradient of a norm's weight: the sum over rows, and within a row over its runs of channels,
// of dn xn (rms_norm.cuh), in the order of parameter_gradient.h. Three kernels with the same bytes:
// one for any shape, one for whole rows and one for heads where everything is aligned to 16 bytes.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_WEIGHT_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_WEIGHT_GRADIENT_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/candidate/cuda/norm_rows.cuh"
#include "kernels/candidate/cuda/parameter_gradient.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/cuda_status.h"

namespace plumbline::candidate_cuda {

// What one value adds: dn, after the modulation where there is one, times xn.
template <bool kModulated>
__device__ float WeightContribution(float grad, float factor, float x, float r) {
  float dn = grad;
  if constexpr (kModulated) dn = RoundThroughBf16(dn * factor);
  return dn * (x * r);
}

// Block (run, columns), a thread a column.
template <bool kModulated>
__global__ void __launch_bounds__(128)
    RmsNormWeightRunsKernel(NormShape shape, View<const bf16> x, Modulation modulation,
                            const float* saved, View<const bf16> grad, float* run_sums) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= shape.width) return;
  const int64_t begin = int64_t{blockIdx.x} * kRowsPerRun;
  const int64_t end = min(begin + kRowsPerRun, shape.flat_rows);
  float sum = 0;
  for (int64_t flat_row = begin; flat_row < end; ++flat_row) {
    const int64_t item = flat_row / shape.rows;
    const int64_t row = flat_row % shape.rows;
    const bf16* const from = x.Row(row, item);
    const bf16* const g = grad.Row(row, item);
    float factor = 1;
    if constexpr (kModulated) {
      factor =
          Modulation::Factor(cuda::Widen(modulation.scale.Row(*modulation.index.Row(row))[column]));
    }
    const float* const r = saved + flat_row * shape.groups;
#pragma unroll 8
    for (int64_t group = 0; group < shape.groups; ++group) {
      const int64_t place = group * shape.width + column;
      sum += WeightContribution<kModulated>(cuda::Widen(g[place]), factor, cuda::Widen(from[place]),
                                            r[group]);
    }
  }
  run_sums[int64_t{blockIdx.x} * shape.width + column] = sum;
}

// Rows that are one run of channels. Block (run, chunks), a thread a chunk.
inline constexpr int kWeightThreads = 64;
inline constexpr int kWeightRowsAtOnce = 4;

template <bool kModulated>
__global__ void __launch_bounds__(kWeightThreads)
    WideNormWeightRunsKernel(NormShape shape, View<const bf16> x, Modulation modulation,
                             const float* saved, View<const bf16> grad, float* run_sums) {
  const int column = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kChunkValues;
  if (column >= shape.width) return;
  const int64_t begin = int64_t{blockIdx.x} * kRowsPerRun;
  const int64_t end = min(begin + kRowsPerRun, shape.flat_rows);
  float sums[kChunkValues] = {};
  for (int64_t first = begin; first < end; first += kWeightRowsAtOnce) {
    Chunk gradients[kWeightRowsAtOnce], inputs[kWeightRowsAtOnce], scales[kWeightRowsAtOnce];
    float r[kWeightRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kWeightRowsAtOnce; ++i) {
      const int64_t flat_row = min(first + i, end - 1);
      const int64_t item = flat_row / shape.rows;
      const int64_t row = flat_row % shape.rows;
      gradients[i] = LoadChunkOnce(grad.Row(row, item) + column);
      inputs[i] = LoadChunkOnce(x.Row(row, item) + column);
      r[i] = saved[flat_row];
      if constexpr (kModulated) {
        scales[i] = LoadChunk(modulation.scale.Row(*modulation.index.Row(row)) + column);
      }
    }
#pragma unroll
    for (int i = 0; i < kWeightRowsAtOnce; ++i) {
      if (first + i >= end) break;
#pragma unroll
      for (int j = 0; j < kChunkValues; ++j) {
        float factor = 1;
        if constexpr (kModulated) factor = Modulation::Factor(cuda::Widen(scales[i].values[j]));
        sums[j] += WeightContribution<kModulated>(cuda::Widen(gradients[i].values[j]), factor,
                                                  cuda::Widen(inputs[i].values[j]), r[i]);
      }
    }
  }
  float* const to = run_sums + int64_t{blockIdx.x} * shape.width + column;
#pragma unroll
  for (int j = 0; j < kChunkValues; ++j) to[j] = sums[j];
}

// Heads. A run is a chain of kRowsPerRun * groups additions for each of its columns, far longer
// than memory is slow: a block has kHeadColumns columns of a run, its last warp adds, and the
// others bring it what there is to add through two tiles in shared memory.
inline constexpr int kHeadColumns = 32;
inline constexpr int kHeadTileRows = 64;
inline constexpr int kHeadTileChunks = kHeadColumns / kChunkValues;
inline constexpr int kHeadBringers = kHeadTileRows * kHeadTileChunks;
inline constexpr int kHeadTilesAhead = 3;

static __global__ void __launch_bounds__(kHeadBringers + 32)
    HeadNormWeightRunsKernel(NormShape shape, View<const bf16> x, const float* saved,
                             View<const bf16> grad, float* run_sums) {
  __shared__ float values[2][kHeadTileRows][kHeadColumns];
  const bool is_adder = threadIdx.x >= kHeadBringers;
  const int first_column = static_cast<int>(blockIdx.y) * kHeadColumns;
  const int64_t begin = int64_t{blockIdx.x} * kRowsPerRun;
  const int64_t run_rows = min(kRowsPerRun, shape.flat_rows - begin);
  const int groups = static_cast<int>(shape.groups);
  const int count = static_cast<int>(run_rows) * groups;  // of what each column adds
  const int tiles = (count + kHeadTileRows - 1) / kHeadTileRows;

  const int tile_row = threadIdx.x / kHeadTileChunks;
  const int tile_column = static_cast<int>(threadIdx.x) % kHeadTileChunks * kChunkValues;
  struct Inputs {
    Chunk grad;
    Chunk x;
    float r;
  };
  Inputs inputs[kHeadTilesAhead] = {};
  const auto read = [&](int tile, Inputs& to) {
    const int number = tile * kHeadTileRows + tile_row;
    if (is_adder || number >= count) return;
    const int64_t flat_row = begin + number / groups;
    const int group = number % groups;
    const int64_t item = flat_row / shape.rows;
    const int64_t row = flat_row % shape.rows;
    const int64_t place = int64_t{group} * shape.width + first_column + tile_column;
    to.grad = LoadChunk(grad.Row(row, item) + place);
    to.x = LoadChunk(x.Row(row, item) + place);
    to.r = saved[flat_row * groups + group];
  };
  const auto write = [&](int tile, const Inputs& from) {
    if (is_adder || tile * kHeadTileRows + tile_row >= count) return;
    float contributions[kChunkValues];
#pragma unroll
    for (int j = 0; j < kChunkValues; ++j) {
      contributions[j] = WeightContribution<false>(cuda::Widen(from.grad.values[j]), 1,
                                                   cuda::Widen(from.x.values[j]), from.r);
    }
    float4* const to = reinterpret_cast<float4*>(&values[tile % 2][tile_row][tile_column]);
    to[0] = make_float4(contributions[0], contributions[1], contributions[2], contributions[3]);
    to[1] = make_float4(contributions[4], contributions[5], contributions[6], contributions[7]);
  };

  float sum = 0;
#pragma unroll
  for (int i = 0; i < kHeadTilesAhead; ++i) read(i, inputs[i]);
  for (int first = 0; first <= tiles; first += kHeadTilesAhead) {
#pragma unroll
    for (int i = 0; i < kHeadTilesAhead; ++i) {
      // Tile `first + i` is written while the one before it is added.
      const int tile = first + i;
      write(tile, inputs[i]);
      read(tile + kHeadTilesAhead, inputs[i]);
      if (is_adder && tile > 0 && tile <= tiles) {
        const int rows = min(kHeadTileRows, count - (tile - 1) * kHeadTileRows);
#pragma unroll 16
        for (int row = 0; row < rows; ++row) sum += values[(tile - 1) % 2][row][threadIdx.x % 32];
      }
      __syncthreads();
    }
  }
  if (is_adder) {
    run_sums[int64_t{blockIdx.x} * shape.width + first_column + threadIdx.x % 32] = sum;
  }
}

// Fills `run_sums`, RunCount(flat rows) rows of shape.width floats; `aligned`: x, the gradient and
// the modulation's scale, to kChunkValues. `modulation` is null for kRmsNorm.
inline absl::Status SumWeightRuns(cudaStream_t stream, const NormShape& shape,
                                  const View<const bf16>& x, const Modulation* modulation,
                                  const float* saved, const View<const bf16>& grad, bool aligned,
                                  float* run_sums) {
  const unsigned runs = static_cast<unsigned>(RunCount(shape.flat_rows));
  const auto blocks = [&](int columns) {
    return dim3(runs, static_cast<unsigned>((shape.width + columns - 1) / columns));
  };
  const Modulation modulated = modulation != nullptr ? *modulation : Modulation::None();
  if (aligned && shape.groups == 1) {
    const auto kernel =
        modulation != nullptr ? WideNormWeightRunsKernel<true> : WideNormWeightRunsKernel<false>;
    kernel<<<blocks(kWeightThreads * kChunkValues), kWeightThreads, 0, stream>>>(
        shape, x, modulated, saved, grad, run_sums);
  } else if (aligned && modulation == nullptr && shape.width % kHeadColumns == 0) {
    HeadNormWeightRunsKernel<<<blocks(kHeadColumns), kHeadBringers + 32, 0, stream>>>(
        shape, x, saved, grad, run_sums);
  } else {
    const auto kernel =
        modulation != nullptr ? RmsNormWeightRunsKernel<true> : RmsNormWeightRunsKernel<false>;
    kernel<<<blocks(128), 128, 0, stream>>>(shape, x, modulated, saved, grad, run_sums);
  }
  return LaunchStatus("candidate RMSNorm weight gradient");
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_WEIGHT_GRADIENT_CUH_
