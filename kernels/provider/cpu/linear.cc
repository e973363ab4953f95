#include "kernels/provider/cpu/linear.h"

#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/product.h"

namespace plumbline::provider {

void LinearForward(const ExecutionContext& context, GemmPath path, const Tensor& x,
                   const Tensor& weight, const Tensor& bias, const Tensor& output) {
  Multiply(context, {path,
                     {x, SummedAxis::kWidth, weight.dtype},
                     {weight, SummedAxis::kWidth, weight.dtype},
                     bias,
                     weight.dtype,
                     output});
}

size_t LinearForwardWorkspaceBytes(const Tensor& weight, const ExecutionContext& context) {
  return ProductWorkspaceBytes(weight.width, context);
}

void LinearBackward(const ExecutionContext& context, GemmPath path, const Tensor& x,
                    const Tensor& weight, const Tensor& grad_output,
                    const LinearGradients& gradients) {
  if (!gradients.x.IsNull()) {
    Multiply(context, {path,
                       {grad_output, SummedAxis::kWidth, weight.dtype},
                       {weight, SummedAxis::kRows, weight.dtype},
                       Tensor(),
                       weight.dtype,
                       gradients.x});
  }
  if (!gradients.weight.IsNull()) {
    Multiply(context, {path,
                       {grad_output, SummedAxis::kRows, weight.dtype},
                       {x, SummedAxis::kRows, weight.dtype},
                       Tensor(),
                       weight.dtype,
                       gradients.weight});
  }
  if (!gradients.bias.IsNull()) SumRows(context, grad_output, gradients.bias);
}

size_t LinearBackwardWorkspaceBytes(const Tensor& x, const Tensor& weight,
                                    const ExecutionContext& context) {
  return ProductWorkspaceBytes(std::max(weight.rows, x.batch * x.rows), context);
}

namespace {

class Linear : public Operation {
 public:
  explicit Linear(GemmPath path) : path_(path) {}

  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kLinear, call, 1, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    check.Type("x", x, {DType::kBF16, DType::kF32})
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, CallCheck::kAny, x.width)
        .Type("output", call.output, {weight.dtype})
        .Shape("output", call.output, x.batch, x.rows, weight.rows);
    if (call.parameters.size() == 2) {
      check.Type("bias", call.parameters[1], {weight.dtype})
          .Shape("bias", call.parameters[1], 1, 1, weight.rows);
    }
    return check.status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return LinearForwardWorkspaceBytes(call.parameters[0], context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return LinearBackwardWorkspaceBytes(call.inputs[0], call.parameters[0], context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    LinearForward(context, path_, call.inputs[0], call.parameters[0],
                  call.parameters.size() == 2 ? call.parameters[1] : Tensor(), call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    LinearBackward(context, path_, call.inputs[0], call.parameters[0], call.grad_output,
                   {call.grad_inputs[0], call.grad_parameters[0],
                    call.parameters.size() == 2 ? call.grad_parameters[1] : Tensor()});
    return absl::OkStatus();
  }

 private:
  const GemmPath path_;
};

}  // namespace

std::shared_ptr<const Operation> MakeLinear(GemmPath path) {
  return std::make_shared<Linear>(path);
}

}  // namespace plumbline::provider
