#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_PATH_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_PATH_H_

namespace plumbline::provider_cuda {

// PyTorch's preferred BLAS library, for products without a bias; those with one go through cublasLt
// in either.
enum class GemmPath { kCublas, kCublasLt };

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_PATH_H_
