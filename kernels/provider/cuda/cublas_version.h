#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_VERSION_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_VERSION_H_

#include <string>

#include "absl/status/statusor.h"

namespace plumbline::provider_cuda {

// What a numerical identity has to say about the cuBLAS that the provider runs on, as the library
// gives it, e.g. "13.0.2". FAILED_PRECONDITION where there is none.
absl::StatusOr<std::string> CublasVersion();

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_VERSION_H_
