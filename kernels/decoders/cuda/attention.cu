// kDecoderAttention.
//
//   q, k, v (batch, R, heads * D); each head of each batch item by itself, no mask
//   golden, candidate  kernels/cuda/unfused_attention.h
//   autocast           s = q k^T / sqrt(D); p = exp(s - max(s)) rounded to float16; y = (p v) /
//   (sum
//                      of the unrounded p), rounded to float16: PyTorch's fused kernels over one
//                      tile of keys. q, k and v hold float16 values already.
// Order: products that of kernels/cuda/float32_product.h over the channels or keys; the sum along a
// row of scores BlockSum over 256 threads. Scores are held for a part of the queries at a time;
// which part a row is in changes nothing in its sums.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/call_check.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/unfused_attention.h"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::UnfusedAttention;
using cuda::View;
using cuda::Workspace;

// Of the scores that are held at once.
constexpr int64_t kMostScoreBytes = int64_t{256} << 20;

// Slices of a product, in the dimension of a grid that has the fewest blocks.
constexpr int64_t kMostHeads = 65535;

// A row of scores a block: p in its place, and the sum.
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(float* scores, int64_t keys, float* sums) {
  __shared__ float shared[kThreads];
  float* const row = scores + blockIdx.x * keys;
  float maximum = -INFINITY;
  for (int64_t i = threadIdx.x; i < keys; i += kThreads) maximum = fmaxf(maximum, row[i]);
  shared[threadIdx.x] = maximum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) {
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  maximum = shared[0];
  __syncthreads();
  const float sum = BlockSum<kThreads, float>(keys, shared, [&](int64_t i) {
    const float p = cuda::ExpF32(row[i] - maximum);
    row[i] = RoundThroughHalf(p);
    return p;
  });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// y = acc / sum for the queries of a part: acc is (heads, part, D).
__global__ void __launch_bounds__(kThreads)
    DivideKernel(const float* products, const float* sums, int64_t part, int64_t head_width,
                 int64_t count, int64_t first, View<float> output, int64_t item) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t run = index / head_width;  // head * part + query
  output.Row(first + run % part, item)[run / part * head_width + index % head_width] =
      RoundThroughHalf(products[index] / sums[run]);
}

// The float16 attention's shape and scratch.
struct HalfAttention {
  int64_t rows, heads, head_width;

  explicit HalfAttention(const ForwardCall& call)
      : rows(call.inputs[0].rows),
        heads(call.inputs[0].width / call.attributes.head_width),
        head_width(call.attributes.head_width) {}

  // Queries whose scores are held at once.
  int64_t PartRows() const {
    const int64_t of_query = heads * rows * static_cast<int64_t>(sizeof(float));
    return std::clamp<int64_t>(kMostScoreBytes / std::max<int64_t>(of_query, 1), 1,
                               std::max<int64_t>(rows, 1));
  }

  absl::Status Forward(cudaStream_t stream, const ForwardCall& call, Workspace& workspace) const {
    const int64_t most = PartRows();
    float* const scores = workspace.Take<float>(heads * most * rows);
    float* const products = workspace.Take<float>(heads * most * head_width);
    float* const sums = workspace.Take<float>(heads * most);
    if (scores == nullptr) return absl::OkStatus();
    const Tensor& q = call.inputs[0];
    const Tensor& k = call.inputs[1];
    const Tensor& v = call.inputs[2];
    for (int64_t item = 0; item < q.batch; ++item) {
      for (int64_t first = 0; first < rows; first += most) {
        const int64_t part = std::min(most, rows - first);
        cuda::SlicedProduct product;
        product.slices = heads;
        product.m = part;
        product.n = rows;
        product.k = head_width;
        product.left = {q.Row<float>(first, item), head_width, q.row_stride, 1};
        product.right = {k.Row<float>(0, item), head_width, k.row_stride, 1};
        product.factor = 1.0f / std::sqrt(static_cast<float>(head_width));
        product.output = scores;
        product.slice_stride = part * rows;
        product.row_stride = rows;
        PLUMBLINE_RETURN_IF_ERROR(cuda::MultiplySlices(stream, product));
        SoftmaxKernel<<<static_cast<unsigned>(heads * part), kThreads, 0, stream>>>(scores, rows,
                                                                                    sums);
        PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("a decoder's softmax"));
        product.n = head_width;
        product.k = rows;
        product.left = {scores, part * rows, rows, 1};
        product.right = {v.Row<float>(0, item), head_width, 1, v.row_stride};
        product.factor = 1;
        product.output = products;
        product.slice_stride = part * head_width;
        product.row_stride = head_width;
        PLUMBLINE_RETURN_IF_ERROR(cuda::MultiplySlices(stream, product));
        const int64_t count = heads * part * head_width;
        DivideKernel<<<BlocksFor(count), kThreads, 0, stream>>>(
            products, sums, part, head_width, count, first, View<float>(call.output), item);
        PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("a decoder's attention"));
      }
    }
    return absl::OkStatus();
  }
};

class Attention final : public DecoderOperation {
 public:
  explicit Attention(const Flavour& flavour)
      : DecoderOperation(flavour, OpKind::kDecoderAttention) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(DecoderOperation::Check(call));
    const int64_t heads = call.inputs[0].width / call.attributes.head_width;
    return CallCheck(flavour_.implementation, op_, call, 3, 0)
        .That(heads <= kMostHeads,
              absl::StrCat("the heads, ", heads, ", must be at most ", kMostHeads))
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    Workspace measure;
    return Run(nullptr, call, measure).ok() ? measure.bytes() : 0;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    if (call.inputs[0].NumElements() == 0) return absl::OkStatus();
    Workspace workspace(context.workspace);
    return Run(Stream(context), call, workspace);
  }

 private:
  absl::Status Run(cudaStream_t stream, const ForwardCall& call, Workspace& workspace) const {
    if (flavour_.arithmetic == Arithmetic::kAutocast) {
      return HalfAttention(call).Forward(stream, call, workspace);
    }
    const int64_t head_width = call.attributes.head_width;
    const UnfusedAttention attention(call.inputs[0], head_width,
                                     1.0f / std::sqrt(static_cast<float>(head_width)));
    return attention.Forward(stream, {call.inputs[0], call.inputs[1], call.inputs[2]},
                             /*statistics=*/nullptr, call.output, workspace);
  }
};

}  // namespace

OperationPointer MakeAttention(const Flavour& flavour) {
  return std::make_shared<Attention>(flavour);
}

}  // namespace plumbline::decoders_cuda
