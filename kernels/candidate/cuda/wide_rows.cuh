// Rows in chunks of 16 bytes: what the kernels for aligned rows share. Their sums are those of
// kernels/cuda/row_sum.cuh, bit for bit: thread u of a row stands for that file's lanes 2 u and 2 u
// + 1, whose runs of 4 values are the halves of its chunks.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_ROWS_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_ROWS_CUH_

#include <cstdint>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {

inline constexpr int kChunkValues = 8;
using Chunk = cuda::Run<cuda::bf16, kChunkValues>;

// Threads that stand for 32 lanes.
inline constexpr int kFoldedThreads = 16;

__device__ inline Chunk LoadChunk(const cuda::bf16* from) {
  return *reinterpret_cast<const Chunk*>(from);
}
// The same of what nobody reads again soon.
__device__ inline Chunk LoadChunkOnce(const cuda::bf16* from) {
  const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
  return *reinterpret_cast<const Chunk*>(&bits);
}
__device__ inline void StoreChunk(const Chunk& chunk, cuda::bf16* to) {
  *reinterpret_cast<Chunk*>(to) = chunk;
}
// The same where nobody reads it soon.
__device__ inline void StoreChunkOnce(const Chunk& chunk, cuda::bf16* to) {
  __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&chunk));
}
// The compiler forgets what it knows of the values: what it has widened of them is not kept.
__device__ inline void ForgetWidened(Chunk& chunk) {
  auto& bits = *reinterpret_cast<uint4*>(&chunk);
  asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
}
__device__ inline Chunk RoundChunk(const float (&values)[kChunkValues]) {
  const uint4 bits = {cuda::PackBf16(values[0], values[1]), cuda::PackBf16(values[2], values[3]),
                      cuda::PackBf16(values[4], values[5]), cuda::PackBf16(values[6], values[7])};
  return *reinterpret_cast<const Chunk*>(&bits);
}
__device__ inline void WidenChunk(const Chunk& chunk, float (&to)[kChunkValues]) {
#pragma unroll
  for (int i = 0; i < kChunkValues; ++i) to[i] = cuda::Widen(chunk.values[i]);
}

// round(a b) and round(a + b) of each value, two at a time. Rounded to float32 between, which has
// room for every product and for every sum whose rounding is not plain, they would be the same.
__device__ inline Chunk MultiplyChunks(const Chunk& a, const Chunk& b) {
  Chunk result;
  const auto* const left = reinterpret_cast<const __nv_bfloat162*>(&a);
  const auto* const right = reinterpret_cast<const __nv_bfloat162*>(&b);
  auto* const to = reinterpret_cast<__nv_bfloat162*>(&result);
#pragma unroll
  for (int i = 0; i < kChunkValues / 2; ++i) to[i] = __hmul2_rn(left[i], right[i]);
  return result;
}
__device__ inline Chunk AddChunks(const Chunk& a, const Chunk& b) {
  Chunk result;
  const auto* const left = reinterpret_cast<const __nv_bfloat162*>(&a);
  const auto* const right = reinterpret_cast<const __nv_bfloat162*>(&b);
  auto* const to = reinterpret_cast<__nv_bfloat162*>(&result);
#pragma unroll
  for (int i = 0; i < kChunkValues / 2; ++i) to[i] = __hadd2_rn(left[i], right[i]);
  return result;
}

__device__ inline Chunk ChunkOfOnes() {
  constexpr uint32_t kTwoOnes = 0x3F803F80;
  const uint4 bits = {kTwoOnes, kTwoOnes, kTwoOnes, kTwoOnes};
  return *reinterpret_cast<const Chunk*>(&bits);
}

// The sums of a thread's two lanes.
struct LaneSums {
  float lanes[2] = {0, 0};

  // One fma of a value of each of two chunks' places, in order.
  __device__ void Add(const float (&a)[kChunkValues], const float (&b)[kChunkValues]) {
#pragma unroll
    for (int i = 0; i < kChunkValues; ++i) {
      lanes[i / 4] = __fmaf_rn(a[i], b[i], lanes[i / 4]);
    }
  }

  // The fold of the 32 lanes of kFoldedThreads threads, in every one of them.
  __device__ float Fold() const {
    float even = lanes[0];
    float odd = lanes[1];
#pragma unroll
    for (int offset = kFoldedThreads / 2; offset > 0; offset /= 2) {
      even += __shfl_xor_sync(0xFFFFFFFF, even, offset);
      odd += __shfl_xor_sync(0xFFFFFFFF, odd, offset);
    }
    return even + odd;
  }
};

// The sum over a row by a block of kRowThreads threads, the 128 lanes; in every thread. `shared`
// has four values, which are the caller's again after its next barrier.
inline constexpr int kRowThreads = 64;

__device__ inline float FoldRow(const LaneSums& sums, float* shared) {
  const float folded = sums.Fold();
  if (threadIdx.x % kFoldedThreads == 0) shared[threadIdx.x / kFoldedThreads] = folded;
  __syncthreads();
  return (shared[0] + shared[2]) + (shared[1] + shared[3]);
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_ROWS_CUH_
