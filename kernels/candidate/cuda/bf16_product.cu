#include <algorithm>

#include "kernels/candidate/cuda/bf16_product.h"
#include "kernels/candidate/cuda/sm90_product.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::SummedAxis;

// A block computes kTile x kTile values of C; its 8 warps 64 x 32 each. Operands pass through a
// ring of kStages tiles in shared memory.
constexpr int kTile = 128;
constexpr int kStep = 64;  // of k
constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;
constexpr int kChunk = 8;  // values of 16 bytes
constexpr int kTileBytes = kTile * kStep * sizeof(bf16);
constexpr int kSharedBytes = kStages * 2 * kTileBytes;
constexpr int kChunksOfThread = kTile * kStep / kChunk / kThreads;
// Tiles of C along m that run beside one another before n moves on, so that what they read stays in
// the second-level cache.
constexpr int kGroupTiles = 8;

// One operand: `stride` between its tensor's rows. Where kAlongWidth, k is contiguous in memory,
// else m (or n) is.
struct Source {
  const bf16* data;
  int64_t stride;
  int64_t extent;  // m or n
  int64_t summed;  // k
};

// A tile in shared memory is (kTile, kStep) where k is contiguous, else (kStep, kTile): its rows
// are 8 or 16 chunks, whose places are exchanged within groups of 8 by the row's number, so that
// the 8 rows of a matrix that ldmatrix reads lie in different banks.
template <bool kAlongWidth>
struct Tile {
  static constexpr int kRowChunks = (kAlongWidth ? kStep : kTile) / kChunk;

  __device__ static uint32_t Offset(int row, int chunk) {
    return static_cast<uint32_t>(row * kRowChunks + (chunk ^ (row & 7))) * 16;
  }

  // Starts the copies of the tile at (first, first_k).
  template <bool kAligned>
  __device__ static void Load(const Source& source, int64_t first, int64_t first_k, char* tile) {
#pragma unroll
    for (int i = 0; i < kChunksOfThread; ++i) {
      const int number = i * kThreads + threadIdx.x;
      const int row = number / kRowChunks;
      const int chunk = number % kRowChunks;
      const int64_t memory_row = (kAlongWidth ? first : first_k) + row;
      const int64_t column = (kAlongWidth ? first_k : first) + chunk * kChunk;
      const int64_t rows = kAlongWidth ? source.extent : source.summed;
      const int64_t columns = kAlongWidth ? source.summed : source.extent;
      const bf16* const from = source.data + memory_row * source.stride + column;
      char* const to = tile + Offset(row, chunk);
      if constexpr (kAligned) {
        const bool inside = memory_row < rows && column < columns;
        cuda::CopyAsync(cuda::SharedAddress(to), inside ? from : source.data, inside);
      } else {
        cuda::Run<bf16, kChunk> values;
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          const bool inside = memory_row < rows && column + j < columns;
          values.values[j] = inside ? from[j] : cuda::RoundToBf16(0.0f);
        }
        *reinterpret_cast<cuda::Run<bf16, kChunk>*>(to) = values;
      }
    }
  }

  // The left operand's fragment of rows [row, row + 16), k [k, k + 16).
  __device__ static void LoadLeft(uint32_t tile, int row, int k, uint32_t (&fragment)[4]) {
    const int lane = threadIdx.x % 32;
    if constexpr (kAlongWidth) {
      cuda::LoadMatrices(tile + Offset(row + lane % 16, k / kChunk + lane / 16), fragment);
    } else {
      cuda::LoadMatricesTransposed(
          tile + Offset(k + lane / 16 * 8 + lane % 8, row / kChunk + lane / 8 % 2), fragment);
    }
  }

  // The right operand's fragments of columns [column, column + 8) (the first two) and the next 8.
  __device__ static void LoadRight(uint32_t tile, int column, int k, uint32_t (&fragments)[4]) {
    const int lane = threadIdx.x % 32;
    if constexpr (kAlongWidth) {
      cuda::LoadMatrices(
          tile + Offset(column + lane / 16 * 8 + lane % 8, k / kChunk + lane / 8 % 2), fragments);
    } else {
      cuda::LoadMatricesTransposed(tile + Offset(k + lane % 16, column / kChunk + lane / 16),
                                   fragments);
    }
  }
};

// The tile of C that a block computes.
struct Place {
  int64_t first_m;
  int64_t first_n;

  __device__ Place(int64_t m, int64_t n) {
    const int64_t tiles_m = (m + kTile - 1) / kTile;
    const int64_t tiles_n = (n + kTile - 1) / kTile;
    const int64_t group = blockIdx.x / (kGroupTiles * tiles_n);
    const int64_t in_group = blockIdx.x % (kGroupTiles * tiles_n);
    const int64_t height = min(int64_t{kGroupTiles}, tiles_m - group * kGroupTiles);
    first_m = (group * kGroupTiles + in_group % height) * kTile;
    first_n = in_group / height * kTile;
  }
};

template <typename Out>
struct Destination {
  Out* data;
  int64_t stride;
  const bf16* bias;  // or null
  bool paired;       // whether two neighbouring values may be written at once

  __device__ void Store(int64_t row, int64_t column, int64_t n, float first, float second) const {
    if (column >= n) return;
    const bool both = column + 1 < n;
    if (bias != nullptr) {
      first += cuda::Widen(bias[column]);
      if (both) second += cuda::Widen(bias[column + 1]);
    }
    Out* const to = data + row * stride + column;
    const float rounded[2] = {cuda::RoundThroughBf16(first), cuda::RoundThroughBf16(second)};
    if (paired && both) {
      cuda::StoreRun(rounded, to);
      return;
    }
    to[0] = cuda::RoundTo<Out>(rounded[0]);
    if (both) to[1] = cuda::RoundTo<Out>(rounded[1]);
  }
};

template <bool kLeftAlongWidth, bool kRightAlongWidth, bool kAligned, typename Out>
__global__ void __launch_bounds__(kThreads)
    ProductKernel(Source left, Source right, Destination<Out> output) {
  using LeftTile = Tile<kLeftAlongWidth>;
  using RightTile = Tile<kRightAlongWidth>;
  extern __shared__ __align__(128) char shared[];
  const Place place(left.extent, right.extent);
  const int64_t steps = (left.summed + kStep - 1) / kStep;
  const auto load = [&](int64_t step) {
    if (step < steps) {
      char* const tiles = shared + step % kStages * 2 * kTileBytes;
      LeftTile::template Load<kAligned>(left, place.first_m, step * kStep, tiles);
      RightTile::template Load<kAligned>(right, place.first_n, step * kStep, tiles + kTileBytes);
    }
    cuda::CommitCopies();
  };

  constexpr int kRowFragments = kWarpRows / 16;
  constexpr int kColumnFragments = kWarpColumns / 8;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / (kTile / kWarpColumns) * kWarpRows;
  const int warp_column = warp % (kTile / kWarpColumns) * kWarpColumns;
  float sums[kRowFragments][kColumnFragments][4] = {};

  for (int stage = 0; stage < kStages - 1; ++stage) load(stage);
  for (int64_t step = 0; step < steps; ++step) {
    cuda::WaitForCopies<kStages - 2>();
    __syncthreads();
    load(step + kStages - 1);
    const uint32_t left_tile = cuda::SharedAddress(shared + step % kStages * 2 * kTileBytes);
    const uint32_t right_tile = left_tile + kTileBytes;
#pragma unroll
    for (int k = 0; k < kStep; k += 16) {
      uint32_t a[kRowFragments][4];
      uint32_t b[kColumnFragments / 2][4];
#pragma unroll
      for (int i = 0; i < kRowFragments; ++i) {
        LeftTile::LoadLeft(left_tile, warp_row + i * 16, k, a[i]);
      }
#pragma unroll
      for (int j = 0; j < kColumnFragments / 2; ++j) {
        RightTile::LoadRight(right_tile, warp_column + j * 16, k, b[j]);
      }
#pragma unroll
      for (int i = 0; i < kRowFragments; ++i) {
#pragma unroll
        for (int j = 0; j < kColumnFragments; ++j) {
          cuda::MultiplyAccumulate(a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1], sums[i][j]);
        }
      }
    }
  }

  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kRowFragments; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = place.first_m + warp_row + i * 16 + half * 8 + lane / 4;
      if (row >= left.extent) continue;
#pragma unroll
      for (int j = 0; j < kColumnFragments; ++j) {
        const int64_t column = place.first_n + warp_column + j * 8 + lane % 4 * 2;
        output.Store(row, column, right.extent, sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
    }
  }
}

Source SourceOf(const cuda::Operand& operand) {
  return {static_cast<const bf16*>(operand.tensor.data), operand.tensor.row_stride,
          operand.Extent(), operand.SummedExtent()};
}

template <bool kLeftAlongWidth, bool kRightAlongWidth, bool kAligned, typename Out>
absl::Status Launch(cudaStream_t stream, const Source& left, const Source& right,
                    const Destination<Out>& output) {
  const auto kernel = ProductKernel<kLeftAlongWidth, kRightAlongWidth, kAligned, Out>;
  const absl::Status allowed = CudaStatus(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "candidate product");
  if (!allowed.ok()) return allowed;
  const int64_t blocks = ((left.extent + kTile - 1) / kTile) * ((right.extent + kTile - 1) / kTile);
  kernel<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(left, right, output);
  return LaunchStatus("candidate product");
}

template <bool kLeftAlongWidth, bool kRightAlongWidth>
absl::Status Choose(cudaStream_t stream, const Source& left, const Source& right, bool aligned,
                    const Tensor& bias, const Tensor& output) {
  const bf16* const added = static_cast<const bf16*>(bias.data);
  const bool paired = cuda::IsAligned(output, 2);
  const auto launch = [&](auto destination) {
    return aligned
               ? Launch<kLeftAlongWidth, kRightAlongWidth, true>(stream, left, right, destination)
               : Launch<kLeftAlongWidth, kRightAlongWidth, false>(stream, left, right, destination);
  };
  if (output.dtype == DType::kBF16) {
    return launch(
        Destination<bf16>{static_cast<bf16*>(output.data), output.row_stride, added, paired});
  }
  return launch(
      Destination<float>{static_cast<float*>(output.data), output.row_stride, added, paired});
}

}  // namespace

absl::Status MultiplyBf16(cudaStream_t stream, const cuda::Operand& left,
                          const cuda::Operand& right, const Tensor& bias, const Tensor& output,
                          float* run_sums) {
  if (left.Extent() == 0 || right.Extent() == 0) return absl::OkStatus();
  if (TakesSm90Product(left, right, output)) {
    return Sm90Multiply(stream, left, right, bias, output, run_sums);
  }
  const Source a = SourceOf(left);
  const Source b = SourceOf(right);
  const bool aligned = cuda::AreAligned(kChunk, left.tensor, right.tensor);
  if (left.summed == SummedAxis::kRows) {
    return Choose<false, false>(stream, a, b, aligned, bias, output);
  }
  if (right.summed == SummedAxis::kRows) {
    return Choose<true, false>(stream, a, b, aligned, bias, output);
  }
  return Choose<true, true>(stream, a, b, aligned, bias, output);
}

}  // namespace plumbline::candidate_cuda
