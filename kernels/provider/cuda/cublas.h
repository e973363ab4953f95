// cuBLAS, loaded at run time: which build of it is used is the machine's choice and part of the
// numerical identity, so that the provider can run on the very library of the PyTorch that it is
// compared with (LD_LIBRARY_PATH).
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_H_

#include <cublasLt.h>
#include <cublas_v2.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::provider_cuda {

// The functions of libcublas and libcublasLt that the provider calls. Thread-safe where cuBLAS is.
class Cublas {
 public:
  // The process's own, loaded by the first call. FAILED_PRECONDITION, with what the loader said,
  // where there is none; the answer does not change afterwards.
  static absl::StatusOr<const Cublas*> Get();

  // As the library gives it, e.g. "13.0.2".
  const std::string& version() const { return version_; }

#define PLUMBLINE_CUBLAS_FUNCTION(name) decltype(&::name) name = nullptr
  PLUMBLINE_CUBLAS_FUNCTION(cublasCreate_v2);
  PLUMBLINE_CUBLAS_FUNCTION(cublasSetStream_v2);
  PLUMBLINE_CUBLAS_FUNCTION(cublasSetWorkspace_v2);
  PLUMBLINE_CUBLAS_FUNCTION(cublasSetMathMode);
  // In C++ an overloaded name.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                 int, const void* alpha, const void* a, cudaDataType, int,
                                 const void* b, cudaDataType, int, const void* beta, void* c,
                                 cudaDataType, int, cublasComputeType_t,
                                 cublasGemmAlgo_t) = nullptr;
  PLUMBLINE_CUBLAS_FUNCTION(cublasSgemm_v2);
  PLUMBLINE_CUBLAS_FUNCTION(cublasGetProperty);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulDescCreate);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulDescDestroy);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulDescSetAttribute);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatrixLayoutCreate);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatrixLayoutDestroy);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulPreferenceCreate);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulPreferenceDestroy);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  PLUMBLINE_CUBLAS_FUNCTION(cublasLtMatmul);
#undef PLUMBLINE_CUBLAS_FUNCTION

 private:
  Cublas() = default;
  absl::Status Load();
  absl::Status LoadFunctions(void* cublas, void* cublas_lt);

  std::string version_;
};

// OK for success; otherwise, with `what` and cuBLAS's number for the error, RESOURCE_EXHAUSTED
// where that is memory and INTERNAL for the rest.
absl::Status CublasStatus(cublasStatus_t status, absl::string_view what);

// The handle of the calling thread's current device, which its holder alone may use while it holds
// it. Handles live as long as the process, like the driver.
class CublasHandle {
 public:
  // INTERNAL where cuBLAS makes none.
  static absl::StatusOr<CublasHandle> Lock(const Cublas& cublas);

  cublasHandle_t get() const { return handle_; }
  // PyTorch's: a cublas handle is a cublasLt handle too.
  cublasLtHandle_t lt() const { return reinterpret_cast<cublasLtHandle_t>(handle_); }

 private:
  CublasHandle(std::unique_ptr<absl::MutexLock> lock, cublasHandle_t handle)
      : lock_(std::move(lock)), handle_(handle) {}

  std::unique_ptr<absl::MutexLock> lock_;
  cublasHandle_t handle_;
};

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_CUBLAS_H_
