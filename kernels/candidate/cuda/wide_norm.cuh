// The forward of the norms over whole rows where everything is aligned to 16 bytes, alone and with
// the gated residual before it: a row is read once and kept in registers. rms_norm.cuh and
// gated_residual.cu say shapes, rounding points and order; the bytes are theirs.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_

#include <cuda_runtime.h>

#include <type_traits>

#include "absl/status/status.h"
#include "kernels/candidate/cuda/rms_norm.cuh"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/early_launch.cuh"

namespace plumbline::candidate_cuda {

// The widest row: 11 chunks for each thread.
inline constexpr int kMostRowChunks = 11;
inline constexpr int64_t kMostWideNormWidth = int64_t{kMostRowChunks} * kRowThreads * kChunkValues;

struct GatedBranch {
  View<const bf16> branch;
  View<const bf16> gate;
  View<const int64_t> index;
  View<bf16> sum;  // x + gate branch; null where nobody else reads it
};

// What the rows of one table row have in common.
struct NormTables {
  const bf16* weight;
  const bf16* scale;
  const bf16* shift;
  const bf16* gate;

  __device__ Chunk Weight(int column) const { return LoadChunk(weight + column); }
  __device__ Chunk Factor(int column) const {
    return AddChunks(LoadChunk(scale + column), ChunkOfOnes());
  }
  __device__ Chunk Shift(int column) const { return LoadChunk(shift + column); }
  __device__ Chunk Gate(int column) const { return LoadChunk(gate + column); }
};

struct NormRows {
  unsigned rows;  // of one batch item
  int width;
  View<const bf16> x;
  GatedBranch branch;
  const bf16* weight;
  Modulation modulation;
  float epsilon;
  float* saved;  // or null
  View<bf16> output;

  // Which rows of the tables a row reads.
  template <bool kResidual, bool kModulated>
  __device__ NormTables Tables(unsigned row) const {
    NormTables tables = {weight, nullptr, nullptr, nullptr};
    if constexpr (kModulated) {
      const int64_t table_row = *modulation.index.Row(row);
      tables.scale = modulation.scale.Row(table_row);
      tables.shift = modulation.shift.Row(table_row);
    }
    if constexpr (kResidual) tables.gate = branch.gate.Row(*branch.index.Row(row));
    return tables;
  }
};

template <bool kModulated>
__device__ Chunk Normalise(const Chunk& x, float r, const NormTables& tables, int column) {
  float values[kChunkValues], weights[kChunkValues];
  WidenChunk(x, values);
  WidenChunk(tables.Weight(column), weights);
#pragma unroll
  for (int j = 0; j < kChunkValues; ++j) values[j] = values[j] * r * weights[j];
  Chunk result = RoundChunk(values);
  if constexpr (kModulated) {
    result = AddChunks(MultiplyChunks(result, tables.Factor(column)), tables.Shift(column));
  }
  return result;
}

// Values between two chunks of a thread.
inline constexpr int kChunksApart = kRowThreads * kChunkValues;

// A row is a block's, whose threads keep it in registers. Of a multiprocessor: so many blocks that
// some read while others write, and so few that nothing of the row has to leave the registers.
template <bool kResidual>
inline constexpr int kBlocksOfNorm = kResidual ? 12 : 8;

template <bool kResidual, bool kModulated>
__global__ void __launch_bounds__(kRowThreads, kBlocksOfNorm<kResidual>)
    WideNormKernel(const __grid_constant__ NormRows all) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  __shared__ float shared[4];
  const unsigned item = blockIdx.x / all.rows;
  const unsigned row = blockIdx.x - item * all.rows;
  const NormTables tables = all.template Tables<kResidual, kModulated>(row);
  const int first = static_cast<int>(threadIdx.x) * kChunkValues;
  const bf16* const from = all.x.Row(row, item);
  Chunk kept[kMostRowChunks];
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    const int column = first + i * kChunksApart;
    if (column < all.width) kept[i] = LoadChunk(from + column);
  }
  if constexpr (kResidual) {
    const bf16* const added = all.branch.branch.Row(row, item);
#pragma unroll
    for (int i = 0; i < kMostRowChunks; ++i) {
      const int column = first + i * kChunksApart;
      if (column >= all.width) continue;
      kept[i] = AddChunks(kept[i], MultiplyChunks(tables.Gate(column), LoadChunk(added + column)));
      if (!all.branch.sum.IsNull()) StoreChunk(kept[i], all.branch.sum.Row(row, item) + column);
    }
  }
  LaneSums sums;
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    if (first + i * kChunksApart >= all.width) continue;
    float values[kChunkValues];
    WidenChunk(kept[i], values);
    sums.Add(values, values);
  }
  const float mean_square = FoldRow(sums, shared) / static_cast<float>(all.width);
  const float r = rsqrtf(mean_square + all.epsilon);
  if (all.saved != nullptr && threadIdx.x == 0) all.saved[blockIdx.x] = r;
  bf16* const to = all.output.Row(row, item);
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    const int column = first + i * kChunksApart;
    if (column < all.width) {
      StoreChunk(Normalise<kModulated>(kept[i], r, tables, column), to + column);
    }
  }
}

// Many rows: a block goes through them, and reads each chunk of its next row as it writes that of
// this one. What streams past leaves the caches first, so that the tables stay.
inline constexpr int kBlocksOfManyRows = 10;  // of a multiprocessor: the most without a spill

template <bool kModulated>
__global__ void __launch_bounds__(kRowThreads, kBlocksOfManyRows)
    ManyRowsNormKernel(const __grid_constant__ NormRows all, unsigned flat_rows) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  __shared__ float shared[2][4];
  const int first = static_cast<int>(threadIdx.x) * kChunkValues;
  Chunk kept[kMostRowChunks];
  const auto input = [&](unsigned flat_row) {
    const unsigned item = flat_row / all.rows;
    return all.x.Row(flat_row - item * all.rows, item);
  };
  const auto read = [&](const bf16* from, int i) {
    const int column = first + i * kChunksApart;
    if (column < all.width) kept[i] = LoadChunkOnce(from + column);
  };
  const bf16* const first_row = input(blockIdx.x);
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) read(first_row, i);

  int side = 0;  // of `shared`: the one that no thread still reads
#pragma unroll 1
  for (unsigned flat_row = blockIdx.x; flat_row < flat_rows; flat_row += gridDim.x) {
    const unsigned item = flat_row / all.rows;
    const unsigned row = flat_row - item * all.rows;
    const NormTables tables = all.template Tables<false, kModulated>(row);
    const bool last = flat_rows - flat_row <= gridDim.x;
    const bf16* const next = input(last ? flat_row : flat_row + gridDim.x);
    LaneSums sums;
#pragma unroll
    for (int i = 0; i < kMostRowChunks; ++i) {
      if (first + i * kChunksApart >= all.width) continue;
      float values[kChunkValues];
      WidenChunk(kept[i], values);
      sums.Add(values, values);
      ForgetWidened(kept[i]);
    }
    const float mean_square = FoldRow(sums, shared[side]) / static_cast<float>(all.width);
    side ^= 1;
    const float r = rsqrtf(mean_square + all.epsilon);
    if (all.saved != nullptr && threadIdx.x == 0) all.saved[flat_row] = r;
    bf16* const to = all.output.Row(row, item);
#pragma unroll
    for (int i = 0; i < kMostRowChunks; ++i) {
      const int column = first + i * kChunksApart;
      if (column >= all.width) continue;
      StoreChunkOnce(Normalise<kModulated>(kept[i], r, tables, column), to + column);
      if (!last) read(next, i);
    }
  }
}

// From so many rows of each block on, what is left of the last round no longer counts.
inline constexpr int64_t kLeastRowsOfBlock = 8;

// Whether rows of `width` values, whose tensors are aligned to kChunkValues, are taken.
inline bool TakesWideNorm(int64_t width, bool aligned) {
  return aligned && width % kChunkValues == 0 && width <= kMostWideNormWidth;
}

// `branch` and `modulation` may be null.
inline absl::Status WideNorm(cudaStream_t stream, const Tensor& x, const GatedBranch* branch,
                             const Tensor& weight, const Modulation* modulation, float epsilon,
                             float* saved, const Tensor& output) {
  const int64_t flat_rows = x.batch * x.rows;
  if (flat_rows == 0) return absl::OkStatus();
  const View<const bf16> none{Tensor()};
  const GatedBranch gated =
      branch != nullptr
          ? *branch
          : GatedBranch{none, none, View<const int64_t>(Tensor()), View<bf16>(Tensor())};
  const Modulation modulated = modulation != nullptr ? *modulation : Modulation::None();
  const NormRows all = {static_cast<unsigned>(x.rows),
                        static_cast<int>(x.width),
                        View<const bf16>(x),
                        gated,
                        static_cast<const bf16*>(weight.data),
                        modulated,
                        epsilon,
                        saved,
                        View<bf16>(output)};
  const auto launch = [&](auto has_residual, auto is_modulated) {
    constexpr bool kResidual = decltype(has_residual)::value;
    constexpr bool kModulated = decltype(is_modulated)::value;
    constexpr char kName[] = "candidate RMSNorm";
    if constexpr (!kResidual) {
      const int blocks = kBlocksOfManyRows * cuda::MultiprocessorCount();
      if (flat_rows >= kLeastRowsOfBlock * blocks) {
        return cuda::LaunchEarly(stream, kName, ManyRowsNormKernel<kModulated>, blocks, kRowThreads,
                                 0, all, static_cast<unsigned>(flat_rows));
      }
    }
    return cuda::LaunchEarly(stream, kName, WideNormKernel<kResidual, kModulated>,
                             static_cast<unsigned>(flat_rows), kRowThreads, 0, all);
  };
  if (branch != nullptr) {
    return modulation != nullptr ? launch(std::true_type(), std::true_type())
                                 : launch(std::true_type(), std::false_type());
  }
  return modulation != nullptr ? launch(std::false_type(), std::true_type())
                               : launch(std::false_type(), std::false_type());
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
