#include "kernels/provider/cuda/cublas.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline::provider_cuda {
namespace {

// The major version whose headers this was built with: its functions' types hold.
constexpr int kMajorVersion = CUBLAS_VER_MAJOR;

absl::StatusOr<void*> Open(absl::string_view library) {
  const std::string name = absl::StrCat(library, ".so.", kMajorVersion);
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  return WithPreconditions(absl::FailedPreconditionError(absl::StrCat(
                               "the provider needs ", name, ": ", dlerror(),
                               "; put its folder (CUDA's, or that of PyTorch's nvidia/cu",
                               kMajorVersion, "/lib) into LD_LIBRARY_PATH")),
                           {{"LIBRARY", name, "is not to be found"}});
}

}  // namespace

absl::StatusOr<const Cublas*> Cublas::Get() {
  static const absl::StatusOr<const Cublas*>* const loaded = [] {
    auto* const cublas = new Cublas;
    const absl::Status status = cublas->Load();
    return status.ok() ? new absl::StatusOr<const Cublas*>(cublas)
                       : new absl::StatusOr<const Cublas*>(status);
  }();
  return *loaded;
}

absl::Status Cublas::Load() {
  // libcublas needs libcublasLt, and must find the one that is used here.
  PLUMBLINE_ASSIGN_OR_RETURN(void* const cublas_lt, Open("libcublasLt"));
  PLUMBLINE_ASSIGN_OR_RETURN(void* const cublas, Open("libcublas"));
  PLUMBLINE_RETURN_IF_ERROR(LoadFunctions(cublas, cublas_lt));
  int version[3];
  for (int i = 0; i < 3; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(CublasStatus(
        cublasGetProperty(static_cast<libraryPropertyType>(i), &version[i]), "its version"));
  }
  version_ = absl::StrCat(version[0], ".", version[1], ".", version[2]);
  return absl::OkStatus();
}

absl::Status Cublas::LoadFunctions(void* cublas, void* cublas_lt) {
  absl::Status status = absl::OkStatus();
  const auto load = [&status](void* library, const char* name, auto* function) {
    void* const address = dlsym(library, name);
    if (address == nullptr) {
      status.Update(absl::FailedPreconditionError(absl::StrCat("cuBLAS has no ", name)));
    }
    *reinterpret_cast<void**>(function) = address;
  };
#define PLUMBLINE_LOAD(library, name) load(library, #name, &name)
  PLUMBLINE_LOAD(cublas, cublasCreate_v2);
  PLUMBLINE_LOAD(cublas, cublasSetStream_v2);
  PLUMBLINE_LOAD(cublas, cublasSetWorkspace_v2);
  PLUMBLINE_LOAD(cublas, cublasSetMathMode);
  PLUMBLINE_LOAD(cublas, cublasGemmEx);
  PLUMBLINE_LOAD(cublas, cublasSgemm_v2);
  PLUMBLINE_LOAD(cublas, cublasGetProperty);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulDescCreate);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulDescDestroy);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulDescSetAttribute);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatrixLayoutCreate);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatrixLayoutDestroy);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulPreferenceCreate);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulPreferenceDestroy);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulPreferenceSetAttribute);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmulAlgoGetHeuristic);
  PLUMBLINE_LOAD(cublas_lt, cublasLtMatmul);
#undef PLUMBLINE_LOAD
  return status;
}

absl::Status CublasStatus(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat("cuBLAS, ", what, ": error ", static_cast<int>(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED
             ? absl::ResourceExhaustedError(absl::StrCat(message, ": no memory"))
             : absl::InternalError(message);
}

absl::StatusOr<CublasHandle> CublasHandle::Lock(const Cublas& cublas) {
  struct Handles {
    absl::Mutex mutex;
    std::map<int, cublasHandle_t> by_device ABSL_GUARDED_BY(mutex);
  };
  static Handles* const handles = new Handles;
  int device = 0;
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "device"));
  auto lock = std::make_unique<absl::MutexLock>(&handles->mutex);
  cublasHandle_t& handle = handles->by_device[device];
  if (handle == nullptr) {
    cublasHandle_t made = nullptr;
    PLUMBLINE_RETURN_IF_ERROR(CublasStatus(cublas.cublasCreate_v2(&made), "making a handle"));
    handle = made;
  }
  return CublasHandle(std::move(lock), handle);
}

}  // namespace plumbline::provider_cuda
