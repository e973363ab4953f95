// Kernels that start while the one before them on the stream still ends: programmatic dependent
// launch. What such a kernel does before WaitForKernelsBefore() lies beside the end of the others.
#ifndef PLUMBLINE_KERNELS_CUDA_EARLY_LAUNCH_CUH_
#define PLUMBLINE_KERNELS_CUDA_EARLY_LAUNCH_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/sm90.h"

namespace plumbline::cuda {

// From here on the next kernel's blocks may take what multiprocessors have free.
__device__ inline void LetNextKernelStart() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until all that was enqueued before is complete and can be seen. Every thread of a kernel started
// by LaunchEarly() calls it before it reads or writes memory that another kernel may write or read,
// so that each one that is complete has all before it complete.
__device__ inline void WaitForKernelsBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches `kernel`, which calls WaitForKernelsBefore(), early where the device can. `name` stands
// in errors.
template <typename... Parameters, typename... Arguments>
absl::Status LaunchEarly(cudaStream_t stream, const char* name, void (*kernel)(Parameters...),
                         dim3 blocks, unsigned threads, size_t shared_bytes,
                         Arguments&&... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = RunsSm90Code() ? 1 : 0;
  return CudaStatus(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
                    name);
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_EARLY_LAUNCH_CUH_
