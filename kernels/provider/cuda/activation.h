// SiLU over whole tensors, for the timestep path.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_ACTIVATION_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_ACTIVATION_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::provider_cuda {

// Enqueued: to = SiLU(x), x float32, `to` float32 or bfloat16 (rounded once).
absl::Status Activate(cudaStream_t stream, const Tensor& x, const Tensor& to);

// Enqueued: to = the gradient of x for the gradient `grad` of SiLU(x), all float32. `to` may be
// grad's memory.
absl::Status ActivationGradient(cudaStream_t stream, const Tensor& grad, const Tensor& x,
                                const Tensor& to);

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_ACTIVATION_H_
