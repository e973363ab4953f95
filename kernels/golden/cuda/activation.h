// SiLU over whole tensors, for the timestep path.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CUDA_ACTIVATION_H_
#define PLUMBLINE_KERNELS_GOLDEN_CUDA_ACTIVATION_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::golden_cuda {

// Enqueued: to = SiLU(x), float64 inside, rounded to float32 once.
absl::Status Activate(cudaStream_t stream, const Tensor& x, const Tensor& to);

// Enqueued: to = grad SiLU'(x), likewise. `to` may be grad's memory.
absl::Status ActivationGradient(cudaStream_t stream, const Tensor& grad, const Tensor& x,
                                const Tensor& to);

}  // namespace plumbline::golden_cuda

#endif  // PLUMBLINE_KERNELS_GOLDEN_CUDA_ACTIVATION_H_
