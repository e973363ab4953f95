// The forward of the norms over whole rows where everything is aligned to 16 bytes, alone and with
// the gated residual before it: a row is read once and kept in registers. rms_norm.cuh and
// gated_residual.cu say shapes, rounding points and order; the bytes are theirs.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_

#include <cuda_runtime.h>

#include <algorithm>

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

// One row a block, so many blocks on a multiprocessor that some read while others write.
template <bool kResidual, bool kModulated>
__global__ void __launch_bounds__(kRowThreads, kResidual ? 10 : 12)
    WideNormKernel(unsigned rows, int width, View<const bf16> x, GatedBranch branch,
                   const bf16* weight, Modulation modulation, float epsilon, float* saved,
                   View<bf16> output) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  __shared__ float shared[4];
  const unsigned item = blockIdx.x / rows;
  const unsigned row = blockIdx.x - item * rows;
  const bf16* const from = x.Row(row, item);
  const auto column = [](int i) {
    return (static_cast<int>(threadIdx.x) + i * kRowThreads) * kChunkValues;
  };

  Chunk kept[kMostRowChunks];
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    if (column(i) < width) kept[i] = LoadChunk(from + column(i));
  }
  if constexpr (kResidual) {
    const bf16* const added = branch.branch.Row(row, item);
    const bf16* const gate = branch.gate.Row(*branch.index.Row(row));
#pragma unroll
    for (int i = 0; i < kMostRowChunks; ++i) {
      if (column(i) >= width) continue;
      const Chunk gated = MultiplyChunks(LoadChunk(gate + column(i)), LoadChunk(added + column(i)));
      kept[i] = AddChunks(kept[i], gated);
      if (!branch.sum.IsNull()) StoreChunk(kept[i], branch.sum.Row(row, item) + column(i));
    }
  }

  LaneSums sums;
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    if (column(i) >= width) continue;
    float values[kChunkValues];
    WidenChunk(kept[i], values);
    sums.Add(values, values);
  }
  const float mean_square = FoldRow(sums, shared) / static_cast<float>(width);
  const float r = rsqrtf(mean_square + epsilon);
  if (saved != nullptr && threadIdx.x == 0) saved[blockIdx.x] = r;

  bf16* const to = output.Row(row, item);
  const int64_t table_row = kModulated ? *modulation.index.Row(row) : 0;
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    if (column(i) >= width) continue;
    float values[kChunkValues], weights[kChunkValues];
    WidenChunk(kept[i], values);
    WidenChunk(LoadChunk(weight + column(i)), weights);
#pragma unroll
    for (int j = 0; j < kChunkValues; ++j) values[j] = values[j] * r * weights[j];
    Chunk result = RoundChunk(values);
    if constexpr (kModulated) {
      const Chunk factor =
          AddChunks(LoadChunk(modulation.scale.Row(table_row) + column(i)), ChunkOfOnes());
      result = AddChunks(MultiplyChunks(result, factor),
                         LoadChunk(modulation.shift.Row(table_row) + column(i)));
    }
    StoreChunk(result, to + column(i));
  }
}

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
  const auto kernel =
      branch != nullptr
          ? (modulation != nullptr ? WideNormKernel<true, true> : WideNormKernel<true, false>)
          : (modulation != nullptr ? WideNormKernel<false, true> : WideNormKernel<false, false>);
  return cuda::LaunchEarly(stream, "candidate RMSNorm", kernel, static_cast<unsigned>(flat_rows),
                           kRowThreads, 0, static_cast<unsigned>(x.rows), static_cast<int>(x.width),
                           View<const bf16>(x), gated, static_cast<const bf16*>(weight.data),
                           modulated, epsilon, saved, View<bf16>(output));
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
