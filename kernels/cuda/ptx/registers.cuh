// Moving registers between a block's warpgroups: setmaxnreg. sm_90a. The kernel needs
// __launch_bounds__(threads, 1), and each warpgroup's role must be one branch of one if/else.
#ifndef PLUMBLINE_KERNELS_CUDA_PTX_REGISTERS_CUH_
#define PLUMBLINE_KERNELS_CUDA_PTX_REGISTERS_CUH_

namespace plumbline::cuda::ptx {

// Registers a thread keeps from here on: a multiple of 8, 24 to 256. Every warp of a warpgroup.
template <int kRegisters>
__device__ void ReleaseRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace plumbline::cuda::ptx

#endif  // PLUMBLINE_KERNELS_CUDA_PTX_REGISTERS_CUH_
