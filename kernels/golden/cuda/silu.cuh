// SiLU and its derivative in float64.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CUDA_SILU_CUH_
#define PLUMBLINE_KERNELS_GOLDEN_CUDA_SILU_CUH_

namespace plumbline::golden_cuda {

__device__ inline double Silu(double x) { return x / (1.0 + exp(-x)); }

__device__ inline double SiluDerivative(double x) {
  const double sigmoid = 1.0 / (1.0 + exp(-x));
  return sigmoid * (1.0 + x * (1.0 - sigmoid));
}

}  // namespace plumbline::golden_cuda

#endif  // PLUMBLINE_KERNELS_GOLDEN_CUDA_SILU_CUH_
