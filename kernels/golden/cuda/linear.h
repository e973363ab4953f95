// The linear layer, and what the operations built on it share.
//
//   x (batch, R, K) float32; weight (1, N, K), bias (1, 1, N) or none, of either type; output
//   (batch, R, N)
//   forward   y = x W^T + bias
//   backward  dx = dy W; dW = dy^T x; dbias = sum of dy over the rows of all items
// Rounding: float32 sums; dbias a float64 sum rounded once. Order: kernels/cuda/float32_product.h,
// dbias kernels/cuda/column_sums.cuh.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CUDA_LINEAR_H_
#define PLUMBLINE_KERNELS_GOLDEN_CUDA_LINEAR_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::golden_cuda {

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

// Enqueued.
absl::Status LinearForward(cudaStream_t stream, const LinearLayer& layer, const Tensor& output);

// Enqueued. `row_sums` is scratch of LinearBackwardValues() values.
absl::Status LinearBackward(cudaStream_t stream, const LinearLayer& layer,
                            const Tensor& grad_output, const LinearGradients& gradients,
                            double* row_sums);
int64_t LinearBackwardValues(const LinearLayer& layer);

}  // namespace plumbline::golden_cuda

#endif  // PLUMBLINE_KERNELS_GOLDEN_CUDA_LINEAR_H_
