#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/unfused_attention.h"

namespace plumbline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kHeldScores = int64_t{1} << 28;  // of all heads of an item: 1 GiB
constexpr int64_t kPartStep = 64;

template <typename Combine>
__device__ double Fold(double value, double* shared, Combine combine) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const double result = shared[0];
  __syncthreads();
  return result;
}

__device__ double FoldSum(double value, double* shared) {
  return Fold(value, shared, [](double a, double b) { return a + b; });
}

// Block (query of the part, head): scores become probabilities, in place.
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(int64_t keys, int64_t first_query, int64_t rows, float* scores,
                  SoftmaxStatistics* statistics) {
  __shared__ double shared[kThreads];
  float* const row = scores + (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * keys;
  double maximum = -INFINITY;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    maximum = fmax(maximum, static_cast<double>(row[key]));
  }
  maximum = Fold(maximum, shared, [](double a, double b) { return fmax(a, b); });
  double sum = 0;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    sum += exp(static_cast<double>(row[key]) - maximum);
  }
  const double reciprocal = 1.0 / FoldSum(sum, shared);
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    row[key] = static_cast<float>(exp(static_cast<double>(row[key]) - maximum) * reciprocal);
  }
  if (statistics != nullptr && threadIdx.x == 0) {
    statistics[int64_t{blockIdx.y} * rows + first_query + blockIdx.x] = {maximum, reciprocal};
  }
}

__device__ double Probability(float score, const SoftmaxStatistics& statistics) {
  return exp(static_cast<double>(score) - statistics.maximum) * statistics.reciprocal_sum;
}

// Block (query of the part, head): the correction c, and dp becomes ds.
__global__ void __launch_bounds__(kThreads)
    QueryScoreGradientKernel(int64_t keys, int64_t first_query, int64_t rows, const float* scores,
                             const SoftmaxStatistics* statistics, float* dp, double* corrections) {
  __shared__ double shared[kThreads];
  const int64_t place = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * keys;
  const int64_t number = int64_t{blockIdx.y} * rows + first_query + blockIdx.x;
  const SoftmaxStatistics row = statistics[number];
  double sum = 0;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    sum += Probability(scores[place + key], row) * static_cast<double>(dp[place + key]);
  }
  const double correction = FoldSum(sum, shared);
  if (threadIdx.x == 0) corrections[number] = correction;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    dp[place + key] = static_cast<float>(Probability(scores[place + key], row) *
                                         (static_cast<double>(dp[place + key]) - correction));
  }
}

// Block (query, head): scores of a part of the keys become p, dp becomes ds.
__global__ void __launch_bounds__(kThreads)
    KeyScoreGradientKernel(int64_t keys, int64_t rows, const SoftmaxStatistics* statistics,
                           const double* corrections, float* scores, float* dp) {
  const int64_t number = int64_t{blockIdx.y} * rows + blockIdx.x;
  const int64_t place = number * keys;
  const SoftmaxStatistics row = statistics[number];
  const double correction = corrections[number];
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    const double p = Probability(scores[place + key], row);
    scores[place + key] = static_cast<float>(p);
    dp[place + key] = static_cast<float>(p * (static_cast<double>(dp[place + key]) - correction));
  }
}

// Row `row` of item `item`; its heads are slices.
float* Place(const Tensor& tensor, int64_t item, int64_t row) {
  return tensor.Row<float>(row, item);
}

// Rows from `row` on as the factor whose channels are summed, or as the one whose rows are.
SlicedOperand SumChannels(const Tensor& tensor, int64_t item, int64_t row, int64_t head_width) {
  return {Place(tensor, item, row), head_width, tensor.row_stride, 1};
}
SlicedOperand SumRows(const Tensor& tensor, int64_t item, int64_t row, int64_t head_width) {
  return {Place(tensor, item, row), head_width, 1, tensor.row_stride};
}

dim3 Blocks(int64_t rows, int64_t heads) {
  return dim3(static_cast<unsigned>(rows), static_cast<unsigned>(heads));
}

}  // namespace

UnfusedAttention::UnfusedAttention(const Tensor& q, int64_t head_width, float factor)
    : batch_(q.batch),
      rows_(q.rows),
      heads_(q.width / head_width),
      head_width_(head_width),
      factor_(factor) {}

int64_t UnfusedAttention::PartRows() const {
  const int64_t held = kHeldScores / std::max<int64_t>(1, heads_ * rows_) / kPartStep * kPartStep;
  return std::min(rows_, std::max(kPartStep, held));
}

absl::Status UnfusedAttention::Forward(cudaStream_t stream, const Inputs& inputs,
                                       SoftmaxStatistics* statistics, const Tensor& output,
                                       Workspace& workspace) const {
  const int64_t part = PartRows();
  float* const scores = workspace.Take<float>(heads_ * part * rows_);
  if (scores == nullptr || StatisticsCount() == 0) return absl::OkStatus();
  for (int64_t item = 0; item < batch_; ++item) {
    for (int64_t first = 0; first < rows_; first += part) {
      const int64_t count = std::min(part, rows_ - first);
      PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(
          stream,
          {heads_, count, rows_, head_width_, SumChannels(inputs.q, item, first, head_width_),
           SumChannels(inputs.k, item, 0, head_width_), factor_, scores, count * rows_, rows_}));
      SoftmaxKernel<<<Blocks(count, heads_), kThreads, 0, stream>>>(
          rows_, first, rows_, scores,
          statistics == nullptr ? nullptr : statistics + item * heads_ * rows_);
      PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("softmax"));
      PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(stream, {heads_,
                                                        count,
                                                        head_width_,
                                                        rows_,
                                                        {scores, count * rows_, rows_, 1},
                                                        SumRows(inputs.v, item, 0, head_width_),
                                                        1.0f,
                                                        Place(output, item, first),
                                                        head_width_,
                                                        output.row_stride}));
    }
  }
  return absl::OkStatus();
}

absl::Status UnfusedAttention::Backward(cudaStream_t stream, const Inputs& inputs,
                                        const Tensor& grad, const SoftmaxStatistics* statistics,
                                        const Gradients& gradients, Workspace& workspace) const {
  const int64_t part = PartRows();
  float* const p = workspace.Take<float>(heads_ * part * rows_);
  float* const dp = workspace.Take<float>(heads_ * part * rows_);
  double* const corrections = workspace.Take<double>(heads_ * rows_);
  if (p == nullptr || StatisticsCount() == 0) return absl::OkStatus();
  for (int64_t item = 0; item < batch_; ++item) {
    const SoftmaxStatistics* const of_item = statistics + item * heads_ * rows_;
    PLUMBLINE_RETURN_IF_ERROR(
        QueryGradients(stream, inputs, grad, item, of_item, corrections, gradients.q, p, dp));
    if (gradients.k.IsNull() && gradients.v.IsNull()) continue;
    PLUMBLINE_RETURN_IF_ERROR(
        KeyGradients(stream, inputs, grad, item, of_item, corrections, gradients, p, dp));
  }
  return absl::OkStatus();
}

absl::Status UnfusedAttention::QueryGradients(cudaStream_t stream, const Inputs& inputs,
                                              const Tensor& grad, int64_t item,
                                              const SoftmaxStatistics* statistics,
                                              double* corrections, const Tensor& grad_q, float* p,
                                              float* dp) const {
  const int64_t part = PartRows();
  for (int64_t first = 0; first < rows_; first += part) {
    const int64_t count = std::min(part, rows_ - first);
    PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(
        stream, {heads_, count, rows_, head_width_, SumChannels(inputs.q, item, first, head_width_),
                 SumChannels(inputs.k, item, 0, head_width_), factor_, p, count * rows_, rows_}));
    PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(
        stream, {heads_, count, rows_, head_width_, SumChannels(grad, item, first, head_width_),
                 SumChannels(inputs.v, item, 0, head_width_), 1.0f, dp, count * rows_, rows_}));
    QueryScoreGradientKernel<<<Blocks(count, heads_), kThreads, 0, stream>>>(
        rows_, first, rows_, p, statistics, dp, corrections);
    PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("softmax backward"));
    if (grad_q.IsNull()) continue;
    PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(stream, {heads_,
                                                      count,
                                                      head_width_,
                                                      rows_,
                                                      {dp, count * rows_, rows_, 1},
                                                      SumRows(inputs.k, item, 0, head_width_),
                                                      factor_,
                                                      Place(grad_q, item, first),
                                                      head_width_,
                                                      grad_q.row_stride}));
  }
  return absl::OkStatus();
}

absl::Status UnfusedAttention::KeyGradients(cudaStream_t stream, const Inputs& inputs,
                                            const Tensor& grad, int64_t item,
                                            const SoftmaxStatistics* statistics,
                                            const double* corrections, const Gradients& gradients,
                                            float* p, float* dp) const {
  const int64_t part = PartRows();
  for (int64_t first = 0; first < rows_; first += part) {
    const int64_t count = std::min(part, rows_ - first);
    PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(
        stream,
        {heads_, rows_, count, head_width_, SumChannels(inputs.q, item, 0, head_width_),
         SumChannels(inputs.k, item, first, head_width_), factor_, p, rows_ * count, count}));
    PLUMBLINE_RETURN_IF_ERROR(MultiplySlices(
        stream, {heads_, rows_, count, head_width_, SumChannels(grad, item, 0, head_width_),
                 SumChannels(inputs.v, item, first, head_width_), 1.0f, dp, rows_ * count, count}));
    KeyScoreGradientKernel<<<Blocks(rows_, heads_), kThreads, 0, stream>>>(count, rows_, statistics,
                                                                           corrections, p, dp);
    PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("softmax backward"));
    const auto sum_queries = [&](const float* weights, const Tensor& of_queries, float factor,
                                 const Tensor& to) {
      if (to.IsNull()) return absl::OkStatus();
      return MultiplySlices(stream, {heads_,
                                     count,
                                     head_width_,
                                     rows_,
                                     {weights, rows_ * count, 1, count},
                                     SumRows(of_queries, item, 0, head_width_),
                                     factor,
                                     Place(to, item, first),
                                     head_width_,
                                     to.row_stride});
    };
    PLUMBLINE_RETURN_IF_ERROR(sum_queries(dp, inputs.q, factor_, gradients.k));
    PLUMBLINE_RETURN_IF_ERROR(sum_queries(p, grad, 1.0f, gradients.v));
  }
  return absl::OkStatus();
}

}  // namespace plumbline::cuda
