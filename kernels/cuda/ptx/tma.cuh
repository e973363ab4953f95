// The bulk tensor copy engine (TMA): thin names for cp.async.bulk.tensor. sm_90. Tensor maps are
// made by kernels/cuda/tensor_map.h and passed to kernels as `const __grid_constant__ CUtensorMap`.
#ifndef PLUMBLINE_KERNELS_CUDA_PTX_TMA_CUH_
#define PLUMBLINE_KERNELS_CUDA_PTX_TMA_CUH_

#include <cuda.h>

#include <cstdint>

namespace plumbline::cuda::ptx {

__device__ inline void PrefetchTensorMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Brings the box at (x, y) to shared memory; its bytes arrive at `barrier`. What lies outside of
// the tensor comes as zeros and counts.
__device__ inline void LoadBox2(const CUtensorMap* map, uint32_t barrier, uint32_t to, int x,
                                int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

// Brings the box into the second-level cache.
__device__ inline void PrefetchBox2(const CUtensorMap* map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(x),
               "r"(y)
               : "memory");
}

// The same to this place, and to this barrier, in every block of the cluster whose bit is in
// `blocks`.
__device__ inline void LoadBox2ToCluster(const CUtensorMap* map, uint32_t barrier, uint32_t to,
                                         int x, int y, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
      "cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks)
      : "memory");
}

__device__ inline void LoadBox4(const CUtensorMap* map, uint32_t barrier, uint32_t to, int x, int y,
                                int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// Brings `bytes` bytes, a multiple of 16, from and to multiples of 16.
__device__ inline void LoadBytes(const void* from, uint32_t barrier, uint32_t to, uint32_t bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Two neighbouring floats of shared memory.
__device__ inline void LoadPair(uint32_t from, float (&to)[2]) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from));
}

// Writes a box from shared memory; what lies outside of the tensor is left out. Threads that wrote
// the box call FenceSharedWrites() before the barrier that comes before this.
__device__ inline void StoreBox2(const CUtensorMap* map, uint32_t from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
}
__device__ inline void StoreBox4(const CUtensorMap* map, uint32_t from, int x, int y, int z,
                                 int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], "
      "[%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ inline void CommitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until the shared memory of all but the last kPending groups of this thread's stores was read.
template <int kPending>
__device__ void WaitForStoreReads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Until all but the last kPending groups are in global memory.
template <int kPending>
__device__ void WaitForStores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// Orders this thread's ordinary writes to shared memory before reads by the copy engine and the
// matrix units that a barrier puts after them.
__device__ inline void FenceSharedWrites() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace plumbline::cuda::ptx

#endif  // PLUMBLINE_KERNELS_CUDA_PTX_TMA_CUH_
