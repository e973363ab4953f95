#ifndef PLUMBLINE_KERNELS_CUDA_CUDA_STATUS_H_
#define PLUMBLINE_KERNELS_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// OK for cudaSuccess; NOT_FOUND where there is no device or driver; RESOURCE_EXHAUSTED where memory
// is short; otherwise INTERNAL. The message is `what`, then CUDA's name and sentence for the error.
absl::Status CudaStatus(cudaError_t error, absl::string_view what);

// What became of the kernel launched last on this thread; `kernel` names it. A launch is refused at
// once, a fault inside the kernel shows at a later call.
inline absl::Status LaunchStatus(absl::string_view kernel) {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? absl::OkStatus() : CudaStatus(error, kernel);
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_CUDA_STATUS_H_
