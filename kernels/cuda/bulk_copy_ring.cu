#include <cstdint>

#include "kernels/cuda/bulk_copy_ring.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/ptx/tma.cuh"

namespace plumbline::cuda {
namespace {

constexpr int kStages = 2;
constexpr uint32_t kTileBytes = kRingTileFloats * sizeof(float);
constexpr int kWarp = 32;
constexpr int kPairs = kRingTileFloats / 2 / kWarp;  // of a thread

__global__ void __launch_bounds__(2 * kWarp) RingKernel(const float* from, int tiles, float* to) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(128) float stages[kStages][kRingTileFloats];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];
  const auto stage_at = [&](int stage) { return SharedAddress(stages[stage]); };
  const auto full = [&](int stage) { return SharedAddress(&barriers[stage]); };
  const auto empty = [&](int stage) { return SharedAddress(&barriers[kStages + stage]); };
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      ptx::InitBarrier(empty(stage), 1);
    }
    ptx::FenceBarrierInit();
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (threadIdx.x >= kWarp) {
    if (lane != 0) return;
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kStages;
      ptx::Wait(empty(stage), (tile / kStages) % 2 ^ 1);
      ptx::ArriveExpecting(full(stage), kTileBytes);
      ptx::LoadBytes(from + tile * kRingTileFloats, full(stage), stage_at(stage), kTileBytes);
    }
    return;
  }
  float sums[kPairs][2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    ptx::Wait(full(stage), (tile / kStages) % 2);
    for (int i = 0; i < kPairs; ++i) {
      float values[2];
      ptx::LoadPair(stage_at(stage) + (i * kWarp + lane) * 2 * sizeof(float), values);
      for (int j = 0; j < 2; ++j) sums[i][j] += values[j];
    }
    __syncwarp();
    if (lane == 0) ptx::Arrive(empty(stage));
  }
  for (int i = 0; i < kPairs; ++i) {
    for (int j = 0; j < 2; ++j) to[(i * kWarp + lane) * 2 + j] = sums[i][j];
  }
#endif
}

}  // namespace

absl::Status AddTilesThroughRing(cudaStream_t stream, const float* from, int tiles, float* to) {
  RingKernel<<<1, 2 * kWarp, 0, stream>>>(from, tiles, to);
  return CudaStatus(cudaGetLastError(), "ring of bulk copies");
}

}  // namespace plumbline::cuda
