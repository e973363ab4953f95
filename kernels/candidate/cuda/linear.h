// The linear layer, and what the operations built on it share.
//
// Shapes: x (batch, R, K), weight (1, N, K), bias (1, 1, N) or none, output (batch, R, N); each
// bfloat16 or float32, bias and output of the weight's type.
// Rounding points: x is cast to the weight's type; y = round(x W^T + bias), the sum float32 and
// rounded to the weight's type once.
// Backward of g: dx = round(g W) to the weight's type, then cast to x's; dW = round(g^T x) with x
// as it was cast; dbias = round(sum of g over rows).
// Order: bf16_product.h, for float32 weights kernels/cuda/float32_product.h, both of which depend
// on the reduced dimension alone: a row of y or dx does not depend on how many rows there are. dW
// sums the rows of all batch items, item after item, in that order too; dbias in
// parameter_gradient.h's.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_LINEAR_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_LINEAR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/workspace.h"
#include "kernels/tensor.h"

namespace plumbline::candidate_cuda {

// One linear layer. `bias` may be null.
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

// The parts of a workspace that one layer's calls need.
class LinearScratch {
 public:
  // Takes them from `workspace`, which may be one that only measures.
  LinearScratch(const LinearLayer& layer, bool backward, cuda::Workspace& workspace);

  absl::Status Forward(cudaStream_t stream, const LinearLayer& layer, const Tensor& output) const;
  absl::Status Backward(cudaStream_t stream, const LinearLayer& layer, const Tensor& grad_output,
                        const LinearGradients& gradients) const;

 private:
  // x as the product reads it.
  absl::Status CastInput(cudaStream_t stream, const LinearLayer& layer, Tensor* x) const;

  Tensor rounded_x_;  // with a place where x must be rounded to the weight's type
  float* bias_sums_ = nullptr;
  float* run_sums_ = nullptr;  // of a product
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_LINEAR_H_
