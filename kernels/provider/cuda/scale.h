#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_SCALE_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_SCALE_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::provider_cuda {

// Enqueued: to = factor * from in float32, rounded once where `to` is bfloat16. One of the two is
// bfloat16, the other float32; the shapes are equal.
absl::Status Scale(cudaStream_t stream, float factor, const Tensor& from, const Tensor& to);

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_SCALE_H_
