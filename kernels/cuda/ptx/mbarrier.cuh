// Barriers in shared memory that threads and the bulk copy engine arrive at: thin names for
// mbarrier, and for what orders threads of a cluster. sm_90.
#ifndef PLUMBLINE_KERNELS_CUDA_PTX_MBARRIER_CUH_
#define PLUMBLINE_KERNELS_CUDA_PTX_MBARRIER_CUH_

#include <cstdint>

namespace plumbline::cuda::ptx {

// A barrier completes a phase when `count` arrivals and all bytes that were announced have come; it
// starts in phase 0. Addresses are those of shared memory (SharedAddress of mma.cuh).
__device__ inline void InitBarrier(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Makes initialised barriers visible to the copy engine and to the cluster's other blocks.
__device__ inline void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void Arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier at the same place in block `rank` of the cluster.
__device__ inline void ArriveAt(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// Arrives, and announces `bytes` that the copy engine will bring in this phase.
__device__ inline void ArriveExpecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Until the phase of this parity is complete. A barrier just initialised passes a wait for
// parity 1.
__device__ inline void Wait(uint32_t barrier, uint32_t parity) {
  uint32_t complete = 0;
  while (complete == 0) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}"
        : "=r"(complete)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__device__ inline uint32_t ClusterRank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Until every thread of the cluster is here.
__device__ inline void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// Barrier `number` (1 to 15) of a block: until `threads` of its threads are there.
__device__ inline void SyncThreads(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
// Counts as one of those threads without waiting.
__device__ inline void ArriveThreads(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

}  // namespace plumbline::cuda::ptx

#endif  // PLUMBLINE_KERNELS_CUDA_PTX_MBARRIER_CUH_
