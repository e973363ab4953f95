// kAdalnProjection of the golden.
//
//   temb (1, T, E) float32, weight (1, N, E), bias (1, 1, N) -> (1, T, N)
//   forward   y = SiLU(temb) W^T + bias
//   backward  dtemb = (dy W) SiLU'(temb); dW = dy^T SiLU(temb); dbias = sum of dy
// Rounding: SiLU(temb) and dy W to float32; the rest as linear.h. Order: linear.h.
#include "common/status.h"
#include "kernels/cuda/workspace.h"
#include "kernels/golden/cuda/activation.h"
#include "kernels/golden/cuda/linear.h"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

// SiLU(temb), and in a backward the scratch of the linear layer.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, absl::Span<uint8_t> memory = {}) : workspace(memory) {
    const Tensor& temb = call.inputs[0];
    activated = Tensor::Dense(workspace.Take<float>(temb.NumElements()), DType::kF32, 1, temb.rows,
                              temb.width);
    layer = {activated, call.parameters[0], call.parameters[1]};
    if (backward) row_sums = workspace.Take<double>(LinearBackwardValues(layer));
  }

  cuda::Workspace workspace;
  Tensor activated;
  LinearLayer layer;
  double* row_sums = nullptr;
};

class AdalnProjection final : public GoldenOperation {
 public:
  AdalnProjection() : GoldenOperation(OpKind::kAdalnProjection) {}

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Layout(call, false).workspace.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Layout(call, true).workspace.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Layout layout(call, false, context.workspace);
    PLUMBLINE_RETURN_IF_ERROR(Activate(Stream(context), call.inputs[0], layout.activated));
    return LinearForward(Stream(context), layout.layer, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Layout layout(call, true, context.workspace);
    const Tensor& grad_temb = call.grad_inputs[0];
    PLUMBLINE_RETURN_IF_ERROR(Activate(Stream(context), call.inputs[0], layout.activated));
    PLUMBLINE_RETURN_IF_ERROR(LinearBackward(
        Stream(context), layout.layer, call.grad_output,
        {grad_temb, call.grad_parameters[0], call.grad_parameters[1]}, layout.row_sums));
    if (grad_temb.IsNull()) return absl::OkStatus();
    return ActivationGradient(Stream(context), grad_temb, call.inputs[0], grad_temb);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAdalnProjection() {
  return std::make_shared<AdalnProjection>();
}

}  // namespace plumbline::golden_cuda
