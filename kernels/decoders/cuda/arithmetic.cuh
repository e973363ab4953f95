// What the kernels of the decoders' operations are templates over.
#ifndef PLUMBLINE_KERNELS_DECODERS_CUDA_ARITHMETIC_CUH_
#define PLUMBLINE_KERNELS_DECODERS_CUDA_ARITHMETIC_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/elementary.cuh"
#include "kernels/decoders/cuda/operations.h"

namespace plumbline::decoders_cuda {

inline constexpr int kThreads = 256;

// Real is what a value is computed in between its loads and its one rounding; with kHalf the points
// that autocast has in float16 are rounded there.
struct Float64 {
  using Real = double;
  static constexpr bool kHalf = false;
};
struct Float32 {
  using Real = float;
  static constexpr bool kHalf = false;
};
struct Autocast {
  using Real = float;
  static constexpr bool kHalf = true;
};

// The float16 nearest to `value`, as a float32.
__device__ inline float RoundThroughHalf(float value) {
  return __half2float(__float2half_rn(value));
}

template <typename A>
__device__ float Half(float value) {
  return A::kHalf ? RoundThroughHalf(value) : value;
}

__device__ inline double ExpOf(double x) { return exp(x); }
__device__ inline float ExpOf(float x) { return cuda::ExpF32(x); }
__device__ inline double ReciprocalRoot(double x) { return 1.0 / sqrt(x); }
__device__ inline float ReciprocalRoot(float x) { return 1.0f / sqrtf(x); }

// The sum of value(i), i < size, over the block's threads: thread t adds i = t, t + threads, ... in
// turn from 0, and the threads' sums are added in a binary tree, halves first. All threads get it.
// `shared` has a Real for each of the block's kCount threads.
template <int kCount, typename Real, typename Value>
__device__ Real BlockSum(int64_t size, Real* shared, Value value) {
  Real sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += kCount) sum += value(i);
  __syncthreads();
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kCount / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

inline unsigned BlocksFor(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// launch(A()) for the arithmetic of a flavour.
template <typename Launch>
absl::Status ForArithmetic(Arithmetic arithmetic, Launch launch) {
  switch (arithmetic) {
    case Arithmetic::kFloat64:
      return launch(Float64());
    case Arithmetic::kFloat32:
      return launch(Float32());
    case Arithmetic::kAutocast:
      return launch(Autocast());
  }
  return absl::InternalError("an arithmetic that there is none of");
}

}  // namespace plumbline::decoders_cuda

#endif  // PLUMBLINE_KERNELS_DECODERS_CUDA_ARITHMETIC_CUH_
