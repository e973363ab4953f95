// The product of bf16_product.h by the matrix units and the copy engine of Hopper.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/product.h"

namespace plumbline::candidate_cuda {

// Whether the current device and the alignments of the operands and of `output` are such. It does
// not depend on how many rows there are.
bool TakesSm90Product(const cuda::Operand& left, const cuda::Operand& right, const Tensor& output);

// As MultiplyBf16(), in tiles of the shape that is expected to be fastest. The bytes are the same
// in every shape.
absl::Status Sm90Multiply(cudaStream_t stream, const cuda::Operand& left,
                          const cuda::Operand& right, const Tensor& bias, const Tensor& output,
                          float* run_sums);

// The shapes of tiles that products of such operands can be computed in, for tests and benchmarks.
int Sm90ShapeCount(const cuda::Operand& left, const cuda::Operand& right);
absl::Status Sm90MultiplyInShape(int shape, cudaStream_t stream, const cuda::Operand& left,
                                 const cuda::Operand& right, const Tensor& bias,
                                 const Tensor& output, float* run_sums);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_H_
