// The arithmetic of kLinear, which kAdalnProjection and kTimeEmbedder share.
//
//   x(R, K), weight(N, K)[, bias(1, N)] -> (R, N)
//   forward   round(cast(x) W^T [+ bias]), the bias added in float32: one rounding to W's type
//   backward  dx = cast to x's type(round(dy W)); dW = round(dy^T cast(x)); db = round(sum of dy);
//             each a float32 sum over all rows of the batch
// Reductions: product.h.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_LINEAR_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_LINEAR_H_

#include <cstddef>

#include "kernels/ops.h"
#include "kernels/provider/cpu/gemm_path.h"

namespace plumbline::provider {

// `bias` may be null.
void LinearForward(const ExecutionContext& context, GemmPath path, const Tensor& x,
                   const Tensor& weight, const Tensor& bias, const Tensor& output);
size_t LinearForwardWorkspaceBytes(const Tensor& weight, const ExecutionContext& context);

// Null gradients are left out.
struct LinearGradients {
  Tensor x;
  Tensor weight;
  Tensor bias;
};
void LinearBackward(const ExecutionContext& context, GemmPath path, const Tensor& x,
                    const Tensor& weight, const Tensor& grad_output,
                    const LinearGradients& gradients);
size_t LinearBackwardWorkspaceBytes(const Tensor& x, const Tensor& weight,
                                    const ExecutionContext& context);

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_LINEAR_H_
