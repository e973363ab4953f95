// Matrix product of bfloat16 operands on the matrix units, float32 sums, one rounding.
//
// Order of every sum: k in steps of 16, ascending, each one instruction of the matrix units onto
// the float32 sum of those before it; k is filled up with zeros to a multiple of 64. It depends on
// the extent of k and on nothing else: not on m or n, nor the place of an element. How one
// instruction adds its 16 products is the architecture's. The instruction is m16n8k16, or on
// Hopper, where the copy engine can address both operands and a bfloat16 output (sm90_product.h),
// wgmma's. There a sum along rows of the left operand that are longer than kLongestChain is cut
// into runs of kProductRun, each such a chain from zero, and the runs' sums are added in order: few
// rows, whose tiles would leave most of the card idle, are then summed by all of it.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_BF16_PRODUCT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_BF16_PRODUCT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/product.h"

namespace plumbline::candidate_cuda {

inline constexpr int64_t kLongestChain = 32768;
inline constexpr int64_t kProductRun = 16384;

// The runs that the sums of a product with this left operand are cut into; 1: they are not.
inline int64_t ProductRuns(const cuda::Operand& left) {
  const int64_t k = left.SummedExtent();
  const bool is_cut = left.summed == cuda::SummedAxis::kWidth && k > kLongestChain;
  return is_cut ? (k + kProductRun - 1) / kProductRun : 1;
}

// Floats of scratch that MultiplyBf16() takes.
inline int64_t ProductRunSums(const cuda::Operand& left, const cuda::Operand& right) {
  const int64_t runs = ProductRuns(left);
  return runs > 1 ? runs * left.Extent() * right.Extent() : 0;
}

// C = round(left right^T + bias), enqueued. Operands and `bias` (1, 1, n), which may be null, are
// bfloat16; `output` is bfloat16, or float32 and then holds the rounded values. Not: left summed
// along its rows and right along its width. `run_sums` holds ProductRunSums() floats.
absl::Status MultiplyBf16(cudaStream_t stream, const cuda::Operand& left,
                          const cuda::Operand& right, const Tensor& bias, const Tensor& output,
                          float* run_sums);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_BF16_PRODUCT_H_
