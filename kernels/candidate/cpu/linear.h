// The linear layer, and what the operations built on it share.
//
// Shapes: x (batch, R, K), weight (1, N, K), bias (1, 1, N) or none, output (batch, R, N); each
// bfloat16 or float32, bias and output of the weight's type.
// Rounding points: x is cast to the weight's type; y = round(x W^T + bias), the sum float32 and
// rounded to the weight's type once.
// Backward of g: dx = round(g W) to the weight's type, then cast to x's; dW = round(g^T x) with x
// as it was cast; dbias = round(sum of g over rows).
// Order: kernels/cpu/gemm.h, which depends on the reduced dimension alone: a row of y or dx does
// not depend on how many rows there are. dW sums the rows of all batch items, item after item, in
// that order too; dbias in parameter_gradient.h's.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_LINEAR_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_LINEAR_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeLinear();

// One linear layer. `bias` may be null. Batch items of x and output must follow one another.
struct LinearLayer {
  Tensor x;
  Tensor weight;
  Tensor bias;
};

// Where the gradients go; what is null is not computed.
struct LinearGradients {
  Tensor x;
  Tensor weight;
  Tensor bias;
};

size_t LinearForwardBytes(const LinearLayer& layer, const ExecutionContext& context);
void LinearForward(const ExecutionContext& context, const LinearLayer& layer, const Tensor& output);
size_t LinearBackwardBytes(const LinearLayer& layer, const ExecutionContext& context);
void LinearBackward(const ExecutionContext& context, const LinearLayer& layer,
                    const Tensor& grad_output, const LinearGradients& gradients);

// Whether the rows of all batch items lie at one stride, so that they can be read as one matrix.
bool IsOneMatrix(const Tensor& tensor);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_LINEAR_H_
