// SiLU and its derivative over whole float32 tensors, for the timestep path.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SILU_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SILU_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::candidate_cuda {

// Enqueued: to = SiLU(x), x float32, `to` of the same shape, bfloat16 (rounded once) or float32.
absl::Status Activate(cudaStream_t stream, const Tensor& x, const Tensor& to);

// Enqueued: to = grad * SiLU'(x) in float32; grad is bfloat16 or float32, x and `to` float32. `to`
// may be grad's memory.
absl::Status ActivationGradient(cudaStream_t stream, const Tensor& grad, const Tensor& x,
                                const Tensor& to);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SILU_H_
