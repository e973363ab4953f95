// Attention as separate products and a softmax over whole rows of scores, float32 between: the
// golden's, and what PyTorch's math path computes.
//
//   forward   s = factor (q k^T); p = exp(s - max(s)) / sum(exp(s - max(s))); y = p v
//   backward  dp = dy v^T; c = sum of p dp over the keys; ds = p (dp - c); dq = factor (ds k);
//             dk = factor (ds^T q); dv = p^T dy; p from the saved statistics
// Rounding: s, p, dp, ds and the results to float32, once each; exp, the sum and c are float64.
// Order: products that of float32_product.h, over the channels, keys or queries; the sums along a
// row of scores: 256 threads, thread t takes keys t, t + 256, ..., and their sums are added in a
// binary tree, halves first. Scores are held for a part of the queries (for dk and dv: of the keys)
// at a time; which part a row is in changes nothing in its sums.
#ifndef PLUMBLINE_KERNELS_CUDA_UNFUSED_ATTENTION_H_
#define PLUMBLINE_KERNELS_CUDA_UNFUSED_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/workspace.h"
#include "kernels/tensor.h"

namespace plumbline::cuda {

// What a forward hands to its backward about one row of one head.
struct SoftmaxStatistics {
  double maximum;
  double reciprocal_sum;
};

// One call's shape: q, k, v, outputs and gradients are (batch, rows, heads * head_width) float32.
class UnfusedAttention {
 public:
  UnfusedAttention(const Tensor& q, int64_t head_width, float factor);

  // Of SoftmaxStatistics, one for each (item, head, row).
  int64_t StatisticsCount() const { return batch_ * heads_ * rows_; }

  struct Inputs {
    Tensor q, k, v;
  };
  // Enqueued. `statistics` may be null. Takes its scratch from `workspace`, which may be one that
  // only measures: then nothing is enqueued.
  absl::Status Forward(cudaStream_t stream, const Inputs& inputs, SoftmaxStatistics* statistics,
                       const Tensor& output, Workspace& workspace) const;

  struct Gradients {
    Tensor q, k, v;  // null where not wanted
  };
  absl::Status Backward(cudaStream_t stream, const Inputs& inputs, const Tensor& grad,
                        const SoftmaxStatistics* statistics, const Gradients& gradients,
                        Workspace& workspace) const;

 private:
  // Rows whose scores are held at once.
  int64_t PartRows() const;
  absl::Status QueryGradients(cudaStream_t stream, const Inputs& inputs, const Tensor& grad,
                              int64_t item, const SoftmaxStatistics* statistics,
                              double* corrections, const Tensor& grad_q, float* p, float* dp) const;
  absl::Status KeyGradients(cudaStream_t stream, const Inputs& inputs, const Tensor& grad,
                            int64_t item, const SoftmaxStatistics* statistics,
                            const double* corrections, const Gradients& gradients, float* p,
                            float* dp) const;

  const int64_t batch_;
  const int64_t rows_;
  const int64_t heads_;
  const int64_t head_width_;
  const float factor_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_UNFUSED_ATTENTION_H_
