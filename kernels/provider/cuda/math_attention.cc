// kAttention of the provider, unfused, as PyTorch's math path computes it from bfloat16 inputs: it
// widens them first and rounds nothing to bfloat16 before its results. D head width, root = the
// root of 1 / sqrt(D), float32.
//
//   q, k, v (batch, R, heads * D) bfloat16 -> (batch, R, heads * D)
//   forward   s = (q root) (k root)^T; p = softmax(s); round(p v)
//   backward  dp = dy v^T; ds = p (dp - rowsum(p dp)); dv = round(p^T dy);
//             dq = round((ds (k root)) root); dk = round((ds^T (q root)) root)
// Reductions, and what is rounded to float32 between: kernels/cuda/unfused_attention.h.
// Saved for the backward: the softmax's statistics of every (item, head, row).
#include <cmath>
#include <vector>

#include "common/status.h"
#include "kernels/cuda/unfused_attention.h"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/scale.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::SoftmaxStatistics;
using cuda::UnfusedAttention;

// The attention over widened tensors, and their places in a workspace. With one that only measures,
// running it enqueues nothing.
class WidenedAttention {
 public:
  template <typename Call>
  WidenedAttention(const Call& call, cuda::Workspace& workspace)
      : workspace_(workspace),
        inputs_(call.inputs.begin(), call.inputs.end()),
        attention_(call.inputs[0], call.attributes.head_width, 1.0f),
        root_(static_cast<float>(
            std::sqrt(1.0 / std::sqrt(static_cast<double>(call.attributes.head_width))))),
        widened_{Place(), Place(), Place()},
        result_(Place()) {}

  absl::Status Forward(cudaStream_t stream, void* saved, const Tensor& output) {
    PLUMBLINE_RETURN_IF_ERROR(Widen(stream));
    PLUMBLINE_RETURN_IF_ERROR(attention_.Forward(
        stream, widened_, static_cast<SoftmaxStatistics*>(saved), result_, workspace_));
    return ScaleInto(stream, 1.0f, result_, output);
  }

  // `grads` are null where not wanted.
  absl::Status Backward(cudaStream_t stream, const void* saved, const Tensor& grad_output,
                        absl::Span<const Tensor> grads) {
    const UnfusedAttention::Gradients places = {Place(), Place(), Place()};
    const auto wanted = [&](size_t i, const Tensor& place) {
      return i < grads.size() && !grads[i].IsNull() ? place : Tensor();
    };
    PLUMBLINE_RETURN_IF_ERROR(Widen(stream));
    PLUMBLINE_RETURN_IF_ERROR(ScaleInto(stream, 1.0f, grad_output, result_));
    PLUMBLINE_RETURN_IF_ERROR(attention_.Backward(
        stream, widened_, result_, static_cast<const SoftmaxStatistics*>(saved),
        {wanted(0, places.q), wanted(1, places.k), wanted(2, places.v)}, workspace_));
    if (grads.empty()) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(ScaleInto(stream, root_, places.q, grads[0]));
    PLUMBLINE_RETURN_IF_ERROR(ScaleInto(stream, root_, places.k, grads[1]));
    return ScaleInto(stream, 1.0f, places.v, grads[2]);
  }

 private:
  // A float32 tensor of q's shape.
  Tensor Place() {
    const Tensor& q = inputs_[0];
    return Tensor::Dense(workspace_.Take<float>(q.NumElements()), DType::kF32, q.batch, q.rows,
                         q.width);
  }

  absl::Status Widen(cudaStream_t stream) {
    PLUMBLINE_RETURN_IF_ERROR(ScaleInto(stream, root_, inputs_[0], widened_.q));
    PLUMBLINE_RETURN_IF_ERROR(ScaleInto(stream, root_, inputs_[1], widened_.k));
    return ScaleInto(stream, 1.0f, inputs_[2], widened_.v);
  }

  static absl::Status ScaleInto(cudaStream_t stream, float factor, const Tensor& from,
                                const Tensor& to) {
    if (from.IsNull() || to.IsNull()) return absl::OkStatus();
    return Scale(stream, factor, from, to);
  }

  cuda::Workspace& workspace_;
  const std::vector<Tensor> inputs_;
  const UnfusedAttention attention_;
  const float root_;
  const UnfusedAttention::Inputs widened_;
  const Tensor result_;  // in a backward the gradient of the result
};

class MathAttention final : public ProviderOperation {
 public:
  MathAttention() : ProviderOperation(OpKind::kAttention) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    return static_cast<size_t>(q.NumElements() / call.attributes.head_width) *
           sizeof(SoftmaxStatistics);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    cuda::Workspace measure;
    WidenedAttention(call, measure).Forward(nullptr, nullptr, Tensor()).IgnoreError();
    return measure.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    cuda::Workspace measure;
    WidenedAttention(call, measure).Backward(nullptr, nullptr, Tensor(), {}).IgnoreError();
    return measure.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    return WidenedAttention(call, workspace).Forward(Stream(context), call.saved, call.output);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    return WidenedAttention(call, workspace)
        .Backward(Stream(context), call.saved, call.grad_output, call.grad_inputs);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeMathAttention() { return std::make_shared<MathAttention>(); }

}  // namespace plumbline::provider_cuda
