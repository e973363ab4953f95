// kAttention of the golden: softmax(q k^T / sqrt(D)) v for each head of each batch item, no mask.
// Formulas, rounding and orders: kernels/cuda/unfused_attention.h, with factor 1 / sqrt(D).
// Saved: the statistics of every (item, head, row).
#include <cmath>

#include "kernels/cuda/unfused_attention.h"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

using cuda::SoftmaxStatistics;
using cuda::UnfusedAttention;

template <typename Call>
UnfusedAttention AttentionOf(const Call& call) {
  const double head_width = static_cast<double>(call.attributes.head_width);
  return UnfusedAttention(call.inputs[0], call.attributes.head_width,
                          static_cast<float>(1.0 / std::sqrt(head_width)));
}

template <typename Call>
UnfusedAttention::Inputs InputsOf(const Call& call) {
  return {call.inputs[0], call.inputs[1], call.inputs[2]};
}

class Attention final : public GoldenOperation {
 public:
  Attention() : GoldenOperation(OpKind::kAttention) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(AttentionOf(call).StatisticsCount()) * sizeof(SoftmaxStatistics);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    cuda::Workspace measure;
    Run(nullptr, call, measure).IgnoreError();
    return measure.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    cuda::Workspace measure;
    Run(nullptr, call, measure).IgnoreError();
    return measure.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    return Run(Stream(context), call, workspace);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    return Run(Stream(context), call, workspace);
  }

 private:
  static absl::Status Run(cudaStream_t stream, const ForwardCall& call,
                          cuda::Workspace& workspace) {
    return AttentionOf(call).Forward(stream, InputsOf(call),
                                     static_cast<SoftmaxStatistics*>(call.saved), call.output,
                                     workspace);
  }
  static absl::Status Run(cudaStream_t stream, const BackwardCall& call,
                          cuda::Workspace& workspace) {
    UnfusedAttention::Gradients gradients;
    if (!call.grad_inputs.empty()) {
      gradients = {call.grad_inputs[0], call.grad_inputs[1], call.grad_inputs[2]};
    }
    return AttentionOf(call).Backward(stream, InputsOf(call), call.grad_output,
                                      static_cast<const SoftmaxStatistics*>(call.saved), gradients,
                                      workspace);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAttention() { return std::make_shared<Attention>(); }

}  // namespace plumbline::golden_cuda
