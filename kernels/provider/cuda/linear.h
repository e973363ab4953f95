// The arithmetic of kLinear, which kAdalnProjection and kTimeEmbedder share.
//
//   x (batch, R, K), weight (1, N, K)[, bias (1, 1, N)] -> (batch, R, N)
//   forward   round(cast(x) W^T [+ bias]), the bias added in float32: one rounding to W's type
//   backward  dx = cast to x's type(round(dy W)); dW = round(dy^T cast(x)); db = round(sum of dy);
//             each a float32 sum over all rows of the batch
// Reductions: gemm.h; db a float64 sum (kernels/cuda/column_sums.cuh).
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_LINEAR_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_LINEAR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/workspace.h"
#include "kernels/provider/cuda/gemm_path.h"
#include "kernels/tensor.h"

namespace plumbline::provider_cuda {

struct LinearLayer {
  Tensor x;
  Tensor weight;
  Tensor bias;  // may be null
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

  absl::Status Forward(cudaStream_t stream, GemmPath path, const LinearLayer& layer,
                       const Tensor& output) const;
  absl::Status Backward(cudaStream_t stream, GemmPath path, const LinearLayer& layer,
                        const Tensor& grad_output, const LinearGradients& gradients) const;

 private:
  // Sets *x to the layer's in the weight's type.
  absl::Status CastInput(cudaStream_t stream, const LinearLayer& layer, Tensor* x) const;

  absl::Span<uint8_t> library_;
  // Of the weight's type, with places where x is not.
  Tensor cast_x_;
  Tensor cast_grad_x_;
  double* row_sums_ = nullptr;
};

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_LINEAR_H_
