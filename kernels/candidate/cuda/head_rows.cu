#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/candidate/cuda/head_rows.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::View;

constexpr int kHeadWidth = 128;
constexpr int kHeadThreads = kHeadWidth / kChunkValues;
static_assert(kHeadThreads == kFoldedThreads);
constexpr int kAxes = 3;
constexpr int kMostThreads = 224;
constexpr int kHeadsAtOnce = 4;  // of a thread, so that their loads overlap

struct Side {
  View<const bf16> x;
  const bf16* weight;
  float* saved;
  View<bf16> normalised;
  View<bf16> rotated;

  explicit Side(const HeadRows& heads)
      : x(heads.x),
        weight(static_cast<const bf16*>(heads.weight.data)),
        saved(heads.saved),
        normalised(heads.normalised),
        rotated(heads.rotated) {}
};
struct Sides {
  Side of[2];
};

// One row of one item and one side a block; 16 threads a head. What a thread reads is on its way
// while the row's angles are computed. kBlocksAtOnce fit a multiprocessor.
template <bool kNorm, bool kRope, int kBlocksAtOnce>
__global__ void __launch_bounds__(kMostThreads, kBlocksAtOnce)
    HeadRowsKernel(unsigned rows, int heads, const __grid_constant__ Sides sides,
                   View<const double> positions, cuda::RotaryFrequencies frequencies,
                   float sine_sign, float epsilon) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  __shared__ __align__(16) bf16 cosines[kHeadWidth / 2];
  __shared__ __align__(16) bf16 sines[kHeadWidth / 2];
  const Side& side = sides.of[blockIdx.y];
  const unsigned item = blockIdx.x / rows;
  const unsigned row = blockIdx.x - item * rows;
  const int thread = static_cast<int>(threadIdx.x) % kHeadThreads;
  const int team = static_cast<int>(threadIdx.x) / kHeadThreads;
  const int teams = static_cast<int>(blockDim.x) / kHeadThreads;
  const bf16* const from = side.x.Row(row, item) + thread * kChunkValues;
  const auto head_of = [&](int first_head, int i) { return first_head + i * teams + team; };

  Chunk chunks[kHeadsAtOnce];
  const auto load = [&](int first_head) {
#pragma unroll
    for (int i = 0; i < kHeadsAtOnce; ++i) {
      chunks[i] = {};
      const int head = head_of(first_head, i);
      if (head < heads) chunks[i] = LoadChunk(from + head * kHeadWidth);
    }
  };
  load(0);

  const int half_threads = kAxes * frequencies.count / kChunkValues;
  Chunk cosine = {}, sine = {};
  // The thread with the other half of the pairs of channels, in the warp.
  int other = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kRope) {
    for (int i = threadIdx.x; i < kAxes * frequencies.count; i += blockDim.x) {
      const float position = static_cast<float>(positions.Row(row)[i / frequencies.count]);
      const float angle = position * frequencies.inverse[i % frequencies.count];
      cosines[i] = cuda::RoundToBf16(cosf(angle));
      sines[i] = cuda::RoundToBf16(sine_sign * sinf(angle));
    }
    __syncthreads();
    if (thread < 2 * half_threads) {
      const bool is_first = thread < half_threads;
      other += is_first ? half_threads : -half_threads;
      const int channel = (is_first ? thread : thread - half_threads) * kChunkValues;
      cosine = LoadChunk(cosines + channel);
      sine = LoadChunk(sines + channel);
      if (is_first) {
        auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&sine);
#pragma unroll
        for (int i = 0; i < kChunkValues / 2; ++i) pairs[i] = __hneg2(pairs[i]);
      }
    }
  }
  float weights[kChunkValues] = {};
  if constexpr (kNorm) WidenChunk(LoadChunk(side.weight + thread * kChunkValues), weights);
  const int64_t offset = team * kHeadWidth + thread * kChunkValues;
  bf16* const normalised =
      kNorm && !side.normalised.IsNull() ? side.normalised.Row(row, item) + offset : nullptr;
  bf16* const rotated = kRope ? side.rotated.Row(row, item) + offset : nullptr;
  float* const saved = kNorm && side.saved != nullptr && thread == 0
                           ? side.saved + int64_t{blockIdx.x} * heads + team
                           : nullptr;

  // A warp's two teams go through the loop equally often.
  for (int first_head = 0; first_head < heads; first_head += kHeadsAtOnce * teams) {
    if (first_head > 0) load(first_head);
    if constexpr (kNorm) {
      float r[kHeadsAtOnce];
#pragma unroll
      for (int i = 0; i < kHeadsAtOnce; ++i) {
        float values[kChunkValues];
        WidenChunk(chunks[i], values);
        LaneSums sums;
        sums.Add(values, values);
        r[i] = rsqrtf(sums.Fold() / static_cast<float>(kHeadWidth) + epsilon);
#pragma unroll
        for (int j = 0; j < kChunkValues; ++j) values[j] = values[j] * r[i] * weights[j];
        chunks[i] = RoundChunk(values);
      }
#pragma unroll
      for (int i = 0; i < kHeadsAtOnce; ++i) {
        if (head_of(first_head, i) >= heads) continue;
        const int head = first_head + i * teams;
        if (saved != nullptr) saved[head] = r[i];
        if (normalised != nullptr) StoreChunk(chunks[i], normalised + head * kHeadWidth);
      }
    }
    if constexpr (kRope) {
#pragma unroll
      for (int i = 0; i < kHeadsAtOnce; ++i) {
        const uint4 own = *reinterpret_cast<const uint4*>(&chunks[i]);
        const uint4 moved = {
            __shfl_sync(0xFFFFFFFF, own.x, other), __shfl_sync(0xFFFFFFFF, own.y, other),
            __shfl_sync(0xFFFFFFFF, own.z, other), __shfl_sync(0xFFFFFFFF, own.w, other)};
        if (thread < 2 * half_threads) {
          chunks[i] = AddChunks(MultiplyChunks(chunks[i], cosine),
                                MultiplyChunks(*reinterpret_cast<const Chunk*>(&moved), sine));
        }
        if (head_of(first_head, i) < heads) {
          StoreChunk(chunks[i], rotated + (first_head + i * teams) * kHeadWidth);
        }
      }
    }
  }
}

}  // namespace

bool TakesHeadRows(const HeadRows& heads, int64_t head_width, int64_t frequencies) {
  return head_width == kHeadWidth && heads.x.dtype == DType::kBF16 &&
         kAxes * frequencies % kChunkValues == 0 && 2 * kAxes * frequencies <= kHeadWidth &&
         cuda::AreAligned(kChunkValues, heads.x, heads.weight, heads.normalised, heads.rotated);
}

absl::Status RunHeadRows(cudaStream_t stream, const HeadRows& first, const HeadRows* second,
                         const Tensor& positions, const Attributes& attributes, float sine_sign) {
  const int64_t flat_rows = first.x.batch * first.x.rows;
  if (flat_rows == 0) return absl::OkStatus();
  const int heads = static_cast<int>(first.x.width / kHeadWidth);
  const bool norm = !first.weight.IsNull();
  const bool rope = !first.rotated.IsNull();
  // An even number of heads at once: whole warps.
  const int threads = std::min(kMostThreads, (heads + 1) / 2 * 2 * kHeadThreads);
  const auto kernel = norm ? (rope ? HeadRowsKernel<true, true, 4> : HeadRowsKernel<true, false, 4>)
                           : HeadRowsKernel<false, true, 5>;
  const cuda::RotaryFrequencies frequencies =
      rope ? cuda::MakeRotaryFrequencies(attributes) : cuda::RotaryFrequencies{};
  const dim3 blocks(static_cast<unsigned>(flat_rows), second == nullptr ? 1 : 2);
  return cuda::LaunchEarly(stream, "candidate heads", kernel, blocks,
                           static_cast<unsigned>(threads), 0, static_cast<unsigned>(first.x.rows),
                           heads, Sides{{Side(first), Side(second == nullptr ? first : *second)}},
                           View<const double>(positions), frequencies, sine_sign,
                           attributes.epsilon);
}

}  // namespace plumbline::candidate_cuda
