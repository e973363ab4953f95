// Runs of bfloat16 or float32 values as float, and the rounding points between them.
#ifndef PLUMBLINE_KERNELS_CUDA_ROUNDING_CUH_
#define PLUMBLINE_KERNELS_CUDA_ROUNDING_CUH_

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device_view.cuh"

namespace plumbline::cuda {

// To nearest even. A NaN's bits are the hardware's, not those of the CPU.
__device__ inline bf16 RoundToBf16(float value) { return __float2bfloat16_rn(value); }
__device__ inline float Widen(bf16 value) { return __bfloat162float(value); }
__device__ inline float Widen(float value) { return value; }
__device__ inline float RoundThroughBf16(float value) { return Widen(RoundToBf16(value)); }

template <typename T>
__device__ T RoundTo(float value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return RoundToBf16(value);
  } else {
    return value;
  }
}

// A run of kCount values in memory, on a boundary of its own size, so that it moves at once (as
// several accesses where it is longer than the 16 bytes of the longest one).
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount <= 16 ? sizeof(T) * kCount : 16) Run {
  T values[kCount];
};

template <int kCount, typename T>
__device__ void LoadRun(const T* from, float (&to)[kCount]) {
  const auto run = *reinterpret_cast<const Run<T, kCount>*>(from);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = Widen(run.values[i]);
}

// Rounds once where T is bfloat16.
template <int kCount, typename T>
__device__ void StoreRun(const float (&from)[kCount], T* to) {
  Run<T, kCount> run;
#pragma unroll
  for (int i = 0; i < kCount; ++i) run.values[i] = RoundTo<T>(from[i]);
  *reinterpret_cast<Run<T, kCount>*>(to) = run;
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ROUNDING_CUH_
