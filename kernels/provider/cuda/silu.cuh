// SiLU in float32, operation for operation and contraction for contraction as PyTorch's kernels.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_SILU_CUH_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_SILU_CUH_

namespace plumbline::provider_cuda {

__device__ inline float Silu(float x) { return x / (1.0f + expf(-x)); }

// The gradient of x for a gradient `grad` of SiLU(x).
__device__ inline float SiluGradient(float grad, float x) {
  const float sigmoid = 1.0f / (1.0f + expf(-x));
  return grad * sigmoid * __fmaf_rn(x, 1.0f - sigmoid, 1.0f);
}

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_SILU_CUH_
