#include "kernels/provider/cuda/cublas_version.h"

#include "common/status.h"
#include "kernels/provider/cuda/cublas.h"

namespace plumbline::provider_cuda {

absl::StatusOr<std::string> CublasVersion() {
  PLUMBLINE_ASSIGN_OR_RETURN(const Cublas* const cublas, Cublas::Get());
  return cublas->version();
}

}  // namespace plumbline::provider_cuda
