// Where __fmaf_rn stands, cuRAND's compiler contracted a product and a sum.
#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/torch_normal.h"

namespace plumbline {
namespace {

constexpr int kThreads = 256;
constexpr uint64_t kMostBlocks = 1 << 20;

__device__ uint4 Philox4x32(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key.x += 0x9E3779B9u;
      key.y += 0xBB67AE85u;
    }
    const uint32_t high0 = __umulhi(0xD2511F53u, counter.x);
    const uint32_t high1 = __umulhi(0xCD9E8D57u, counter.z);
    counter = make_uint4(high1 ^ counter.y ^ key.x, 0xCD9E8D57u * counter.z,
                         high0 ^ counter.w ^ key.y, 0xD2511F53u * counter.x);
  }
  return counter;
}

// cuRAND's _curand_box_muller.
__device__ float2 BoxMuller(uint32_t x, uint32_t y) {
  constexpr float kTwoPi = 6.2831855f;
  const float u = __fmaf_rn(static_cast<float>(x), 0x1p-32f, 0x1p-33f);
  const float v = __fmaf_rn(static_cast<float>(y), 0x1p-32f * kTwoPi, 0x1p-33f * kTwoPi);
  const float s = sqrtf(-2.0f * logf(u));
  float sine, cosine;
  __sincosf(v, &sine, &cosine);
  return make_float2(sine * s, cosine * s);
}

// One thread for each thread and iteration of PyTorch's launch.
__global__ void __launch_bounds__(kThreads)
    NormalKernel(TorchNormalDraw draw, uint64_t threads, uint64_t size, float* to) {
  constexpr uint64_t kWords = TorchNormalDraw::kWords;
  const uint2 key =
      make_uint2(static_cast<uint32_t>(draw.seed), static_cast<uint32_t>(draw.seed >> 32));
  const uint64_t iterations = (size + threads * kWords - 1) / (threads * kWords);
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < iterations * threads;
       i += step) {
    const uint64_t thread = i % threads;
    const uint64_t position = draw.offset / kWords + i / threads;
    const uint4 words = Philox4x32(
        make_uint4(static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                   static_cast<uint32_t>(thread), static_cast<uint32_t>(thread >> 32)),
        key);
    const float2 low = BoxMuller(words.x, words.y);
    const float2 high = BoxMuller(words.z, words.w);
    const float values[kWords] = {low.x, low.y, high.x, high.y};
    const uint64_t begin = i / threads * threads * kWords + thread;
#pragma unroll
    for (uint64_t component = 0; component < kWords; ++component) {
      const uint64_t index = begin + component * threads;
      if (index < size) to[index] = values[component] + 0.0f;  // The mean; -0 becomes 0.
    }
  }
}

}  // namespace

absl::Status DrawTorchNormalOnCuda(cudaStream_t stream, const TorchNormalDraw& draw, float* to,
                                   int64_t count) {
  if (count == 0) return absl::OkStatus();
  const uint64_t size = static_cast<uint64_t>(count);
  const uint64_t threads = draw.Threads(size);
  const uint64_t blocks =
      std::min((draw.Iterations(size) * threads + kThreads - 1) / kThreads, kMostBlocks);
  NormalKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(draw, threads, size, to);
  return LaunchStatus("normal values");
}

}  // namespace plumbline
