// kTimeEmbedder of the golden.
//
//   features (1, T, F), linear_1 (M, F) and (M), linear_2 (N, M) and (N) -> (1, T, N)
//   forward   h = features W1^T + b1; y = SiLU(h) W2^T + b2
//   backward  dh = (dy W2) SiLU'(h); dfeatures = dh W1; dW2 = dy^T SiLU(h); dW1 = dh^T features;
//             db2, db1 = sums of dy, dh
// Rounding: h, SiLU(h) and dh to float32; the rest as linear.h. Order: linear.h. Saved: h.
#include "common/status.h"
#include "kernels/cuda/workspace.h"
#include "kernels/golden/cuda/activation.h"
#include "kernels/golden/cuda/linear.h"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

// SiLU(h); h where it is not saved, in a backward its gradient; and the layers' scratch.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, absl::Span<uint8_t> memory = {}) : workspace(memory) {
    activated = Hidden(call, nullptr);
    hidden_or_gradient = activated;
    activated.data = workspace.Take<float>(activated.NumElements());
    hidden_or_gradient.data = workspace.Take<float>(activated.NumElements());
    first = {call.inputs[0], call.parameters[0], call.parameters[1]};
    second = {activated, call.parameters[2], call.parameters[3]};
    if (!backward) return;
    first_sums = workspace.Take<double>(LinearBackwardValues(first));
    second_sums = workspace.Take<double>(LinearBackwardValues(second));
  }

  // h, at `data`.
  template <typename Call>
  static Tensor Hidden(const Call& call, void* data) {
    return Tensor::Dense(data, DType::kF32, 1, call.inputs[0].rows, call.parameters[0].rows);
  }

  cuda::Workspace workspace;
  Tensor activated;
  Tensor hidden_or_gradient;
  LinearLayer first, second;
  double* first_sums = nullptr;
  double* second_sums = nullptr;
};

class TimeEmbedder final : public GoldenOperation {
 public:
  TimeEmbedder() : GoldenOperation(OpKind::kTimeEmbedder) {}

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
    PLUMBLINE_RETURN_IF_ERROR(LinearForward(stream, layout.first, hidden));
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    return LinearForward(stream, layout.second, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const cudaStream_t stream = Stream(context);
    const Layout layout(call, true, context.workspace);
    const Tensor hidden = Layout::Hidden(call, const_cast<void*>(call.saved));
    const Tensor& grad_hidden = layout.hidden_or_gradient;
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    PLUMBLINE_RETURN_IF_ERROR(LinearBackward(
        stream, layout.second, call.grad_output,
        {grad_hidden, call.grad_parameters[2], call.grad_parameters[3]}, layout.second_sums));
    PLUMBLINE_RETURN_IF_ERROR(ActivationGradient(stream, grad_hidden, hidden, grad_hidden));
    return LinearBackward(stream, layout.first, grad_hidden,
                          {call.grad_inputs[0], call.grad_parameters[0], call.grad_parameters[1]},
                          layout.first_sums);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeEmbedder() { return std::make_shared<TimeEmbedder>(); }

}  // namespace plumbline::golden_cuda
