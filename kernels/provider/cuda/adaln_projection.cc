// kAdalnProjection of the provider.
//
//   temb (1, T, E) float32, weight (1, N, E), bias (1, 1, N) -> (1, T, N)
//   forward   a = cast(SiLU(temb)), SiLU in float32; round(a W^T + bias)
//   backward  da = round(dy W); dtemb = da SiLU'(temb) in float32; dW, db as kLinear
#include "common/status.h"
#include "kernels/cuda/convert.h"
#include "kernels/provider/cuda/activation.h"
#include "kernels/provider/cuda/gemm.h"
#include "kernels/provider/cuda/linear.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

// a, in a backward da, and the linear layer's scratch.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, absl::Span<uint8_t> memory = {})
      : workspace(memory),
        activated(Place(call)),
        grad_activated(backward ? Place(call) : Tensor()),
        layer{activated, call.parameters[0], call.parameters[1]},
        linear(layer, backward, workspace) {}

  cuda::Workspace workspace;
  Tensor activated;
  Tensor grad_activated;
  LinearLayer layer;
  LinearScratch linear;

 private:
  template <typename Call>
  Tensor Place(const Call& call) {
    const Tensor& temb = call.inputs[0];
    Tensor placed = Tensor::Dense(nullptr, call.parameters[0].dtype, 1, temb.rows, temb.width);
    placed.data = workspace.Take<uint8_t>(static_cast<int64_t>(placed.NumBytes()));
    return placed;
  }
};

class AdalnProjection final : public ProviderOperation {
 public:
  explicit AdalnProjection(GemmPath path)
      : ProviderOperation(OpKind::kAdalnProjection), path_(path) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(ProviderOperation::Check(call));
    return CheckGemm();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Layout(call, false).workspace.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Layout(call, true).workspace.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Layout layout(call, false, context.workspace);
    PLUMBLINE_RETURN_IF_ERROR(Activate(Stream(context), call.inputs[0], layout.activated));
    return layout.linear.Forward(Stream(context), path_, layout.layer, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Layout layout(call, true, context.workspace);
    const Tensor& temb = call.inputs[0];
    const Tensor& grad_temb = call.grad_inputs[0];
    PLUMBLINE_RETURN_IF_ERROR(Activate(Stream(context), temb, layout.activated));
    const LinearGradients gradients = {grad_temb.IsNull() ? Tensor() : layout.grad_activated,
                                       call.grad_parameters[0], call.grad_parameters[1]};
    PLUMBLINE_RETURN_IF_ERROR(
        layout.linear.Backward(Stream(context), path_, layout.layer, call.grad_output, gradients));
    if (grad_temb.IsNull()) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(ConvertOnCuda(Stream(context), layout.grad_activated, grad_temb));
    return ActivationGradient(Stream(context), grad_temb, temb, grad_temb);
  }

 private:
  const GemmPath path_;
};

}  // namespace

std::shared_ptr<const Operation> MakeAdalnProjection(GemmPath path) {
  return std::make_shared<AdalnProjection>(path);
}

}  // namespace plumbline::provider_cuda
