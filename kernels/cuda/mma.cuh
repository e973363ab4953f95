// The matrix units as every card of compute capability 8.0 and newer has them: thin names for
// mma.sync, ldmatrix and cp.async.
#ifndef PLUMBLINE_KERNELS_CUDA_MMA_CUH_
#define PLUMBLINE_KERNELS_CUDA_MMA_CUH_

#include <cuda_bf16.h>

#include <cstdint>

namespace plumbline::cuda {

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four 8x8 matrices of bfloat16 from shared memory. Lane l gives the address of row l % 8 of matrix
// l / 8; of each matrix it gets the two values at row l / 4, columns 2 (l % 4) and the next.
__device__ inline void LoadMatrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// The same, each matrix transposed.
__device__ inline void LoadMatricesTransposed(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// c(16, 8) += a(16, 16) b(16, 8), float32 sums. With g = lane / 4 and t = 2 (lane % 4):
//   a: rows g, g + 8, g, g + 8 at columns t, t, t + 8, t + 8 (and the next column each)
//   b: columns g at rows t, t + 8 (and the next row each)
//   c: rows g, g, g + 8, g + 8 at columns t, t + 1, t, t + 1
__device__ inline void MultiplyAccumulate(const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                          float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 16 bytes from global to shared memory in the background; zeros where not `inside`.
__device__ inline void CopyAsync(uint32_t shared, const void* global, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(inside ? 16 : 0)
               : "memory");
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most kPending of the last groups are still under way.
template <int kPending>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Two values rounded to bfloat16, the first in the lower half.
__device__ inline uint32_t PackBf16(float low, float high) {
  const __nv_bfloat162 packed = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&packed);
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_MMA_CUH_
