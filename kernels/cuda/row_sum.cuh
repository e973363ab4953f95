// Sums along one row in one fixed order: that of PyTorch's vectorised normalisation kernels, so
// that a norm here has a PyTorch norm's bytes, statistics included.
//
// Order: 128 lanes; lane t takes runs of 4 neighbouring values, numbers t, t + 128, t + 256, ...,
// each value by one fma onto the lane's sum, which starts at 0. Every 32 lanes are folded, lane j
// += lane j + 16, then + 8, + 4, + 2, + 1; of the four sums w that leaves, (w0 + w2) + (w1 + w3) is
// the result. It depends on the row's length alone. A row of at most 128 values leaves all but the
// first 32 lanes at 0, and may be summed by 32 threads.
#ifndef PLUMBLINE_KERNELS_CUDA_ROW_SUM_CUH_
#define PLUMBLINE_KERNELS_CUDA_ROW_SUM_CUH_

#include <cstdint>

#include "kernels/cuda/rounding.cuh"

namespace plumbline::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr int kRowWarps = 4;
inline constexpr int kRowVector = 4;
inline constexpr int64_t kOneWarpWidth = kWarpSize * kRowVector;

// The threads that share one row: kWarps warps, 4 or (rows of at most kOneWarpWidth) 1. A block has
// kRowWarps warps in all. Every thread of the block must make the same calls.
template <int kWarps>
struct RowTeam {
  static_assert(kWarps == 1 || kWarps == kRowWarps);
  static constexpr int kTeamsInBlock = kRowWarps / kWarps;
  static constexpr int kThreads = kWarps * kWarpSize;

  __device__ static int Team() { return threadIdx.x / kThreads; }
  __device__ static int Thread() { return threadIdx.x % kThreads; }

  // Folds the lanes' sums; every thread of the team gets the result. `shared` has kRowWarps values.
  __device__ static float Fold(float sum, float* shared) {
#pragma unroll
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
      sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
    }
    if constexpr (kWarps == 1) return __shfl_sync(0xFFFFFFFF, sum, 0);
    if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = sum;
    __syncthreads();
    const float result = (shared[0] + shared[2]) + (shared[1] + shared[3]);
    __syncthreads();
    return result;
  }

  // Calls body(first, count) for the team thread's runs of a row of `width` values, in order; count
  // is kRowVector but for the last run of a row whose width is no multiple of it.
  template <typename Body>
  __device__ static void ForEachRun(int width, Body body) {
    for (int first = Thread() * kRowVector; first < width; first += kThreads * kRowVector) {
      body(first, min(kRowVector, width - first));
    }
  }
};

// At most kRowVector values from `from` on, and zeros behind them. kAligned: a whole run is there,
// on its own size's boundary.
template <bool kAligned, typename T>
__device__ void LoadRowRun(const T* from, int count, float (&to)[kRowVector]) {
  if constexpr (kAligned) {
    LoadRun(from, to);
  } else {
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) to[i] = i < count ? Widen(from[i]) : 0.0f;
  }
}

template <bool kAligned, typename T>
__device__ void StoreRowRun(const float (&from)[kRowVector], int count, T* to) {
  if constexpr (kAligned) {
    StoreRun(from, to);
  } else {
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) {
      if (i < count) to[i] = RoundTo<T>(from[i]);
    }
  }
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ROW_SUM_CUH_
