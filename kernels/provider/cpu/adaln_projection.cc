// kAdalnProjection of the provider.
//
//   temb(T, E) float32, weight(N, E), bias(1, N) -> (T, N)
//   forward   a = cast(SiLU(temb)), SiLU in float32; round(a W^T + bias)
//   backward  da = round(dy W); dtemb = da SiLU'(temb) in float32; dW, db as kLinear
#include "kernels/cpu/call_check.h"
#include "kernels/provider/cpu/linear.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/silu.h"
#include "kernels/provider/cpu/values.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

class AdalnProjection : public Operation {
 public:
  explicit AdalnProjection(GemmPath path) : path_(path) {}

  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kAdalnProjection, call, 1, 2);
    if (!check.ok()) return check.status();
    const Tensor& temb = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const Tensor& bias = call.parameters[1];
    return check.Type("temb", temb, {DType::kF32})
        .Type("weight", weight, {DType::kBF16})
        .Shape("weight", weight, 1, CallCheck::kAny, temb.width)
        .Type("bias", bias, {DType::kBF16})
        .Shape("bias", bias, 1, 1, weight.rows)
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, temb.batch, temb.rows, weight.rows)
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return ActivatedBytes(call.inputs[0]) +
           LinearForwardWorkspaceBytes(call.parameters[0], context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return ActivatedBytes(call.inputs[0]) +
           LinearBackwardWorkspaceBytes(call.inputs[0], call.parameters[0], context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    ExecutionContext rest = context;
    const Tensor activated = Activate(call.inputs[0], &rest);
    LinearForward(rest, path_, activated, call.parameters[0], call.parameters[1], call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& temb = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const Tensor& grad_temb = call.grad_inputs[0];
    ExecutionContext rest = context;
    const Tensor activated = Activate(temb, &rest);
    // The rounded product is widened into the place of dtemb, then multiplied there.
    LinearBackward(rest, path_, activated, weight, call.grad_output,
                   {grad_temb, call.grad_parameters[0], call.grad_parameters[1]});
    if (grad_temb.IsNull()) return absl::OkStatus();
    for (int64_t r = 0; r < temb.batch * temb.rows; ++r) {
      const float* const x = FlatRow<float>(temb, r);
      float* const grad = FlatRow<float>(grad_temb, r);
      for (int64_t i = 0; i < temb.width; ++i) grad[i] = SiluGradient(grad[i], x[i]);
    }
    return absl::OkStatus();
  }

 private:
  static size_t ActivatedBytes(const Tensor& temb) {
    return AlignUp(static_cast<size_t>(temb.NumElements()) * sizeof(bfloat16));
  }

  // cast(SiLU(temb)), in the beginning of the workspace, which is taken out of `context`.
  static Tensor Activate(const Tensor& temb, ExecutionContext* context) {
    const Tensor activated =
        Tensor::Dense(context->workspace.data(), DType::kBF16, temb.batch, temb.rows, temb.width);
    context->workspace.remove_prefix(ActivatedBytes(temb));
    for (int64_t r = 0; r < temb.batch * temb.rows; ++r) {
      const float* const x = FlatRow<float>(temb, r);
      bfloat16* const to = FlatRow<bfloat16>(activated, r);
      for (int64_t i = 0; i < temb.width; ++i) to[i] = RoundToBf16(Silu(x[i]));
    }
    return activated;
  }

  const GemmPath path_;
};

}  // namespace

std::shared_ptr<const Operation> MakeAdalnProjection(GemmPath path) {
  return std::make_shared<AdalnProjection>(path);
}

}  // namespace plumbline::provider
