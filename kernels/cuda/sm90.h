#ifndef PLUMBLINE_KERNELS_CUDA_SM90_H_
#define PLUMBLINE_KERNELS_CUDA_SM90_H_

namespace plumbline::cuda {

// Whether the thread's current device runs the kernels that are compiled for sm_90a alone (those in
// files named sm90_...): it is a Hopper, and its driver takes their machine code. Asked of the
// driver once for each device. Any thread.
bool RunsSm90Code();

// Multiprocessors of the thread's current device.
int MultiprocessorCount();

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_SM90_H_
