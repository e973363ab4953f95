// Matrix products as PyTorch 2.11 asks cuBLAS for them (ATen's CUDABlas.cpp and Blas.cpp), so that
// the same library gives the same bits:
//   without a bias   cublasGemmEx (float32: cublasSgemm), default algorithm and math mode, reduced
//                    precision reductions allowed; with GemmPath::kCublasLt cublasLtMatmul by its
//                    first heuristic, and cublasGemmEx where that has none
//   with a bias      cublasLtMatmul with the bias as epilogue, by its first heuristic; where an
//                    extent is 1, or cublasLt has none, the bias is copied into the result and
//                    cublasGemmEx adds to it
// A row-major C = left right^T is asked for as the column-major C^T. Accumulation is float32 (never
// TF32), with one rounding; the order of the sums is the library's. Scratch of the library: 32 MiB
// on Hopper, 8 MiB + 128 KiB elsewhere; of cublasLt 1 MiB of it.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/product.h"
#include "kernels/provider/cuda/gemm_path.h"

namespace plumbline::provider_cuda {

// Of the calling thread's current device.
size_t GemmWorkspaceBytes();

// Whether the library is there: FAILED_PRECONDITION otherwise.
absl::Status CheckGemm();

// C(m, n) = left right^T [+ bias], enqueued. Everything is of one type, bfloat16, float16 or
// float32; `bias`
// (1, 1, n) may be null. Not: left summed along its rows and right along its width. `workspace` has
// GemmWorkspaceBytes() bytes on a 256-byte boundary.
absl::Status Multiply(cudaStream_t stream, GemmPath path, const cuda::Operand& left,
                      const cuda::Operand& right, const Tensor& bias, const Tensor& output,
                      absl::Span<uint8_t> workspace);

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_GEMM_H_
