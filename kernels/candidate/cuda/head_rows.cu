#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/candidate/cuda/head_rows.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
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

// One row of one item a block; 16 threads a head.
template <bool kNorm, bool kRope>
__global__ void __launch_bounds__(kMostThreads)
    HeadRowsKernel(int64_t rows, int heads, int sides, Side first, Side second,
                   View<const double> positions, cuda::RotaryFrequencies frequencies,
                   float sine_sign, float epsilon) {
  __shared__ float cosines[kHeadWidth / 2];
  __shared__ float sines[kHeadWidth / 2];
  const int64_t item = blockIdx.x / rows;
  const int64_t row = blockIdx.x % rows;
  const int thread = threadIdx.x % kHeadThreads;
  const int team = threadIdx.x / kHeadThreads;
  const int teams = blockDim.x / kHeadThreads;
  const int half_threads = kAxes * frequencies.count / kChunkValues;

  float cosine[kChunkValues], sine[kChunkValues];
  if constexpr (kRope) {
    const int half = kAxes * frequencies.count;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
      const float position = static_cast<float>(positions.Row(row)[i / frequencies.count]);
      const float angle = position * frequencies.inverse[i % frequencies.count];
      cosines[i] = RoundThroughBf16(cosf(angle));
      sines[i] = RoundThroughBf16(sinf(angle));
    }
    __syncthreads();
    if (thread < 2 * half_threads) {
      const bool is_first = thread < half_threads;
      const int channel = (is_first ? thread : thread - half_threads) * kChunkValues;
#pragma unroll
      for (int i = 0; i < kChunkValues; ++i) {
        cosine[i] = cosines[channel + i];
        sine[i] = (is_first ? -sine_sign : sine_sign) * sines[channel + i];
      }
    }
  }
  // The thread with the other half of the pairs of channels, in the warp.
  const int other =
      static_cast<int>(threadIdx.x % 32) + (thread < half_threads       ? half_threads
                                            : thread < 2 * half_threads ? -half_threads
                                                                        : 0);

  for (int number = 0; number < sides; ++number) {
    const Side& side = number == 0 ? first : second;
    float weights[kChunkValues];
    if constexpr (kNorm) WidenChunk(LoadChunk(side.weight + thread * kChunkValues), weights);
    // A warp's two teams go through the loop equally often.
    for (int first_head = 0; first_head < heads; first_head += kHeadsAtOnce * teams) {
      Chunk chunks[kHeadsAtOnce];
#pragma unroll
      for (int i = 0; i < kHeadsAtOnce; ++i) {
        const int head = first_head + i * teams + team;
        if (head < heads) {
          chunks[i] =
              LoadChunkOnce(side.x.Row(row, item) + head * kHeadWidth + thread * kChunkValues);
        } else {
          chunks[i] = {};
        }
      }
#pragma unroll
      for (int i = 0; i < kHeadsAtOnce; ++i) {
        const int head = first_head + i * teams + team;
        const int64_t column = int64_t{head} * kHeadWidth + thread * kChunkValues;
        if constexpr (kNorm) {
          float values[kChunkValues];
          WidenChunk(chunks[i], values);
          LaneSums sums;
          sums.Add(values, values);
          const float r = rsqrtf(sums.Fold() / static_cast<float>(kHeadWidth) + epsilon);
#pragma unroll
          for (int j = 0; j < kChunkValues; ++j) values[j] = values[j] * r * weights[j];
          chunks[i] = RoundChunk(values);
          if (head < heads) {
            if (side.saved != nullptr && thread == 0)
              side.saved[blockIdx.x * int64_t{heads} + head] = r;
            if (!side.normalised.IsNull()) {
              StoreChunk(chunks[i], side.normalised.Row(row, item) + column);
            }
          }
        }
        if constexpr (kRope) {
          const uint4 own = *reinterpret_cast<const uint4*>(&chunks[i]);
          const uint4 moved = {
              __shfl_sync(0xFFFFFFFF, own.x, other), __shfl_sync(0xFFFFFFFF, own.y, other),
              __shfl_sync(0xFFFFFFFF, own.z, other), __shfl_sync(0xFFFFFFFF, own.w, other)};
          if (thread < 2 * half_threads) {
            float values[kChunkValues], others[kChunkValues];
            WidenChunk(chunks[i], values);
            WidenChunk(*reinterpret_cast<const Chunk*>(&moved), others);
#pragma unroll
            for (int j = 0; j < kChunkValues; ++j) {
              values[j] =
                  RoundThroughBf16(values[j] * cosine[j]) + RoundThroughBf16(others[j] * sine[j]);
            }
            chunks[i] = RoundChunk(values);
          }
          if (head < heads) StoreChunk(chunks[i], side.rotated.Row(row, item) + column);
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
  const auto kernel = norm ? (rope ? HeadRowsKernel<true, true> : HeadRowsKernel<true, false>)
                           : HeadRowsKernel<false, true>;
  const cuda::RotaryFrequencies frequencies =
      rope ? cuda::MakeRotaryFrequencies(attributes) : cuda::RotaryFrequencies{};
  kernel<<<static_cast<unsigned>(flat_rows), threads, 0, stream>>>(
      first.x.rows, heads, second == nullptr ? 1 : 2, Side(first),
      Side(second == nullptr ? first : *second), View<const double>(positions), frequencies,
      sine_sign, attributes.epsilon);
  return LaunchStatus("candidate heads");
}

}  // namespace plumbline::candidate_cuda
