// kTimeEmbedder of the provider: float32 throughout, products by sgemm.
//
//   features(T, F), linear_1.weight(E, F), linear_1.bias, linear_2.weight(N, E), linear_2.bias
//   forward   hidden = features W1^T + b1; output = SiLU(hidden) W2^T + b2
//   backward  da = dy W2; dhidden = da SiLU'(hidden); the rest as kLinear
// Reductions: product.h. Saved for the backward: hidden (T, E).
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/provider/cpu/linear.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/silu.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

class TimeEmbedder : public Operation {
 public:
  explicit TimeEmbedder(GemmPath path) : path_(path) {}

  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kTimeEmbedder, call, 1, 4);
    if (!check.ok()) return check.status();
    const Tensor& features = call.inputs[0];
    const int64_t hidden = call.parameters[0].rows;
    const int64_t outputs = call.parameters[2].rows;
    check.Type("features", features, {DType::kF32})
        .Shape("linear_1.weight", call.parameters[0], 1, CallCheck::kAny, features.width)
        .Shape("linear_1.bias", call.parameters[1], 1, 1, hidden)
        .Shape("linear_2.weight", call.parameters[2], 1, CallCheck::kAny, hidden)
        .Shape("linear_2.bias", call.parameters[3], 1, 1, outputs)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, features.batch, features.rows, outputs);
    for (const Tensor& parameter : call.parameters)
      check.Type("a parameter", parameter, {DType::kF32});
    return check.status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Hidden(call.inputs[0], call.parameters[0], nullptr).NumBytes();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    const Tensor hidden = Hidden(call.inputs[0], call.parameters[0], nullptr);
    return 2 * AlignUp(hidden.NumBytes()) +
           std::max(LinearForwardWorkspaceBytes(call.parameters[0], context),
                    LinearForwardWorkspaceBytes(call.parameters[2], context));
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    const Tensor hidden = Hidden(call.inputs[0], call.parameters[0], nullptr);
    return 2 * AlignUp(hidden.NumBytes()) +
           std::max(LinearBackwardWorkspaceBytes(call.inputs[0], call.parameters[0], context),
                    LinearBackwardWorkspaceBytes(hidden, call.parameters[2], context));
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    ExecutionContext rest = context;
    const Tensor& features = call.inputs[0];
    Tensor hidden = TakeHidden(features, call.parameters[0], &rest);
    const Tensor activated = TakeHidden(features, call.parameters[0], &rest);
    if (call.saved != nullptr) hidden.data = call.saved;
    LinearForward(rest, path_, features, call.parameters[0], call.parameters[1], hidden);
    Activate(hidden, activated);
    LinearForward(rest, path_, activated, call.parameters[2], call.parameters[3], call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    ExecutionContext rest = context;
    const Tensor& features = call.inputs[0];
    const Tensor activated = TakeHidden(features, call.parameters[0], &rest);
    const Tensor grad_hidden = TakeHidden(features, call.parameters[0], &rest);
    const Tensor hidden = Hidden(features, call.parameters[0], const_cast<void*>(call.saved));
    Activate(hidden, activated);
    LinearBackward(rest, path_, activated, call.parameters[2], call.grad_output,
                   {grad_hidden, call.grad_parameters[2], call.grad_parameters[3]});
    const float* const x = static_cast<const float*>(hidden.data);
    float* const grad = static_cast<float*>(grad_hidden.data);
    for (int64_t i = 0; i < hidden.NumElements(); ++i) grad[i] = SiluGradient(grad[i], x[i]);
    LinearBackward(rest, path_, features, call.parameters[0], grad_hidden,
                   {call.grad_inputs[0], call.grad_parameters[0], call.grad_parameters[1]});
    return absl::OkStatus();
  }

 private:
  // A view of the inner values, (T, E) float32, at `data`.
  static Tensor Hidden(const Tensor& features, const Tensor& weight, void* data) {
    return Tensor::Dense(data, DType::kF32, features.batch, features.rows, weight.rows);
  }

  // The same at the beginning of the workspace, which is taken out of `context`.
  static Tensor TakeHidden(const Tensor& features, const Tensor& weight,
                           ExecutionContext* context) {
    const Tensor hidden = Hidden(features, weight, context->workspace.data());
    context->workspace.remove_prefix(AlignUp(hidden.NumBytes()));
    return hidden;
  }

  static void Activate(const Tensor& hidden, const Tensor& activated) {
    const float* const from = static_cast<const float*>(hidden.data);
    float* const to = static_cast<float*>(activated.data);
    for (int64_t i = 0; i < hidden.NumElements(); ++i) to[i] = Silu(from[i]);
  }

  const GemmPath path_;
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeEmbedder(GemmPath path) {
  return std::make_shared<TimeEmbedder>(path);
}

}  // namespace plumbline::provider
