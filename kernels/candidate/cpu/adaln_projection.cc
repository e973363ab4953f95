#include "kernels/candidate/cpu/adaln_projection.h"

#include "kernels/candidate/cpu/convert.h"
#include "kernels/candidate/cpu/linear.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/silu.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/call_check.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::candidate {
namespace {

// Scratch of one call: s, its gradient, and the linear layer's scratch, given as a context.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, const ExecutionContext& context) : linear(context) {
    const Tensor& temb = call.inputs[0];
    WorkspaceLayout layout(context.workspace.data());
    activated = Tensor::Dense(nullptr, call.parameters[0].dtype, temb.batch, temb.rows, temb.width);
    grad_activated = activated;
    activated.data = layout.Bytes(activated.NumBytes());
    if (backward) grad_activated.data = layout.Bytes(grad_activated.NumBytes());
    const LinearLayer layer = {activated, call.parameters[0], call.parameters[1]};
    linear.workspace = {};
    const size_t linear_bytes =
        backward ? LinearBackwardBytes(layer, linear) : LinearForwardBytes(layer, linear);
    linear.workspace = absl::MakeSpan(layout.Bytes(linear_bytes), linear_bytes);
    bytes = layout.bytes();
  }

  Tensor activated;
  Tensor grad_activated;
  ExecutionContext linear;
  size_t bytes;
};

class AdalnProjection final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kAdalnProjection, call, 1, 2);
    if (!check.ok()) return check.status();
    const Tensor& temb = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    return check.Type("temb", temb, {DType::kF32})
        .Shape("temb", temb, 1, CallCheck::kAny, CallCheck::kAny)
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, CallCheck::kAny, temb.width)
        .Type("bias", call.parameters[1], {weight.dtype})
        .Shape("bias", call.parameters[1], 1, 1, weight.rows)
        .Type("the output", call.output, {weight.dtype})
        .Shape("the output", call.output, 1, temb.rows, weight.rows)
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return Layout(call, false, context).bytes;
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return Layout(call, true, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Layout layout(call, false, context);
    Activate(context, call.inputs[0], layout.activated);
    LinearForward(layout.linear, {layout.activated, call.parameters[0], call.parameters[1]},
                  call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Layout layout(call, true, context);
    const Tensor& grad_temb = call.grad_inputs[0];
    Activate(context, call.inputs[0], layout.activated);
    LinearBackward(layout.linear, {layout.activated, call.parameters[0], call.parameters[1]},
                   call.grad_output,
                   {grad_temb.IsNull() ? Tensor() : layout.grad_activated, call.grad_parameters[0],
                    call.grad_parameters[1]});
    if (grad_temb.IsNull()) return absl::OkStatus();
    ParallelRows(*context.threads, 1, grad_temb.rows, [&](int64_t, int64_t row) {
      const float* temb = call.inputs[0].Row<float>(row);
      float* to = grad_temb.Row<float>(row);
      ConvertRow(layout.grad_activated, 0, row, grad_temb, 0, row);
      for (int64_t i = 0; i < grad_temb.width; ++i) to[i] *= SiluDerivative(temb[i]);
    });
    return absl::OkStatus();
  }

 private:
  static void Activate(const ExecutionContext& context, const Tensor& temb,
                       const Tensor& activated) {
    ParallelRows(*context.threads, 1, temb.rows, [&](int64_t, int64_t row) {
      const float* from = temb.Row<float>(row);
      if (activated.dtype == DType::kBF16) {
        bfloat16* to = activated.Row<bfloat16>(row);
        for (int64_t i = 0; i < temb.width; ++i) to[i] = RoundToBf16(Silu(from[i]));
      } else {
        float* to = activated.Row<float>(row);
        for (int64_t i = 0; i < temb.width; ++i) to[i] = Silu(from[i]);
      }
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAdalnProjection() {
  return std::make_shared<AdalnProjection>();
}

}  // namespace plumbline::candidate
