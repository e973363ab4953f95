// kTimeEmbedder of the provider, float32 throughout.
//
//   features (1, T, F), linear_1.weight (1, M, F), linear_1.bias, linear_2.weight (1, N, M),
//   linear_2.bias
//   forward   h = features W1^T + b1; output = SiLU(h) W2^T + b2
//   backward  da = dy W2; dh = da SiLU'(h); the rest as kLinear
// Reductions: gemm.h. Saved for the backward: h (T, M).
#include "common/status.h"
#include "kernels/provider/cuda/activation.h"
#include "kernels/provider/cuda/gemm.h"
#include "kernels/provider/cuda/linear.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

// SiLU(h); h where it is not saved, in a backward its gradient; and the linear layers' scratch.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, absl::Span<uint8_t> memory = {})
      : workspace(memory),
        activated(Place(call)),
        hidden_or_gradient(Place(call)),
        first{call.inputs[0], call.parameters[0], call.parameters[1]},
        second{activated, call.parameters[2], call.parameters[3]},
        first_scratch(first, backward, workspace),
        second_scratch(second, backward, workspace) {}

  // h, at `data`.
  template <typename Call>
  static Tensor Hidden(const Call& call, void* data) {
    return Tensor::Dense(data, DType::kF32, 1, call.inputs[0].rows, call.parameters[0].rows);
  }

  cuda::Workspace workspace;
  Tensor activated;
  Tensor hidden_or_gradient;
  LinearLayer first, second;
  LinearScratch first_scratch, second_scratch;

 private:
  template <typename Call>
  Tensor Place(const Call& call) {
    Tensor placed = Hidden(call, nullptr);
    placed.data = workspace.Take<float>(placed.NumElements());
    return placed;
  }
};

class TimeEmbedder final : public ProviderOperation {
 public:
  explicit TimeEmbedder(GemmPath path) : ProviderOperation(OpKind::kTimeEmbedder), path_(path) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(ProviderOperation::Check(call));
    return CheckGemm();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Layout::Hidden(call, nullptr).NumBytes();
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Layout(call, false).workspace.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Layout(call, true).workspace.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const cudaStream_t stream = Stream(context);
    const Layout layout(call, false, context.workspace);
    const Tensor hidden =
        call.saved != nullptr ? Layout::Hidden(call, call.saved) : layout.hidden_or_gradient;
    PLUMBLINE_RETURN_IF_ERROR(layout.first_scratch.Forward(stream, path_, layout.first, hidden));
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    return layout.second_scratch.Forward(stream, path_, layout.second, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const cudaStream_t stream = Stream(context);
    const Layout layout(call, true, context.workspace);
    const Tensor hidden = Layout::Hidden(call, const_cast<void*>(call.saved));
    const Tensor& grad_hidden = layout.hidden_or_gradient;
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    PLUMBLINE_RETURN_IF_ERROR(layout.second_scratch.Backward(
        stream, path_, layout.second, call.grad_output,
        {grad_hidden, call.grad_parameters[2], call.grad_parameters[3]}));
    PLUMBLINE_RETURN_IF_ERROR(ActivationGradient(stream, grad_hidden, hidden, grad_hidden));
    return layout.first_scratch.Backward(
        stream, path_, layout.first, grad_hidden,
        {call.grad_inputs[0], call.grad_parameters[0], call.grad_parameters[1]});
  }

 private:
  const GemmPath path_;
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeEmbedder(GemmPath path) {
  return std::make_shared<TimeEmbedder>(path);
}

}  // namespace plumbline::provider_cuda
