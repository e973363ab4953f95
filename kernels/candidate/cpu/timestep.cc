#include "kernels/candidate/cpu/timestep.h"

#include <algorithm>

#include "kernels/candidate/cpu/linear.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/silu.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/call_check.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::candidate {
namespace {

constexpr float kMinusLogLongestPeriod = -9.210340371976184f;  // -ln(10000)

class TimeProjection final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kTimeProjection, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& timestep = call.inputs[0];
    return check.Type("timestep", timestep, {DType::kF32})
        .Shape("timestep", timestep, 1, CallCheck::kAny, 1)
        .Type("the output", call.output, {DType::kF32})
        .Shape("the output", call.output, 1, timestep.rows, CallCheck::kAny)
        .That(call.output.width % 2 == 0, "the output's width must be even")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const int64_t frequencies = call.output.width / 2;
    ParallelRows(*context.threads, 1, call.output.rows, [&](int64_t, int64_t row) {
      const float timestep = *call.inputs[0].Row<float>(row);
      float* to = call.output.Row<float>(row);
      for (int64_t i = 0; i < frequencies; ++i) {
        const float exponent =
            kMinusLogLongestPeriod * static_cast<float>(i) / static_cast<float>(frequencies);
        const float angle = timestep * Exp(exponent);
        to[i] = Cos(angle);
        to[frequencies + i] = Sin(angle);
      }
    });
    return absl::OkStatus();
  }
};

// Scratch of one call: linear_1's output where it is not saved, SiLU of it, the gradient of either,
// and the linear layers' scratch, given as a context.
struct EmbedderLayout {
  template <typename Call>
  EmbedderLayout(const Call& call, bool backward, const ExecutionContext& context)
      : linear(context) {
    WorkspaceLayout layout(context.workspace.data());
    const Tensor& features = call.inputs[0];
    const Tensor shape =
        Tensor::Dense(nullptr, DType::kF32, features.batch, features.rows, call.parameters[0].rows);
    const auto place = [&]() {
      Tensor placed = shape;
      placed.data = layout.Bytes(shape.NumBytes());
      return placed;
    };
    activated = place();
    hidden_or_gradient = place();
    first = {features, call.parameters[0], call.parameters[1]};
    second = {activated, call.parameters[2], call.parameters[3]};
    linear.workspace = {};
    const size_t linear_bytes =
        backward ? std::max(LinearBackwardBytes(first, linear), LinearBackwardBytes(second, linear))
                 : std::max(LinearForwardBytes(first, linear), LinearForwardBytes(second, linear));
    linear.workspace = absl::MakeSpan(layout.Bytes(linear_bytes), linear_bytes);
    bytes = layout.bytes();
  }

  Tensor activated;
  Tensor hidden_or_gradient;
  LinearLayer first, second;
  ExecutionContext linear;
  size_t bytes;
};

class TimeEmbedder final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kTimeEmbedder, call, 1, 4);
    if (!check.ok()) return check.status();
    const Tensor& features = call.inputs[0];
    const int64_t hidden = call.parameters[0].rows;
    const int64_t outputs = call.parameters[2].rows;
    return check.Type("features", features, {DType::kF32})
        .Shape("features", features, 1, CallCheck::kAny, CallCheck::kAny)
        .Type("linear_1.weight", call.parameters[0], {DType::kF32})
        .Shape("linear_1.weight", call.parameters[0], 1, CallCheck::kAny, features.width)
        .Type("linear_1.bias", call.parameters[1], {DType::kF32})
        .Shape("linear_1.bias", call.parameters[1], 1, 1, hidden)
        .Type("linear_2.weight", call.parameters[2], {DType::kF32})
        .Shape("linear_2.weight", call.parameters[2], 1, CallCheck::kAny, hidden)
        .Type("linear_2.bias", call.parameters[3], {DType::kF32})
        .Shape("linear_2.bias", call.parameters[3], 1, 1, outputs)
        .Type("the output", call.output, {DType::kF32})
        .Shape("the output", call.output, 1, features.rows, outputs)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Hidden(call, nullptr).NumBytes();
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return EmbedderLayout(call, false, context).bytes;
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return EmbedderLayout(call, true, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const EmbedderLayout layout(call, false, context);
    const Tensor hidden =
        call.saved != nullptr ? Hidden(call, call.saved) : layout.hidden_or_gradient;
    LinearForward(layout.linear, layout.first, hidden);
    Activate(context, hidden, layout.activated);
    LinearForward(layout.linear, layout.second, call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const EmbedderLayout layout(call, true, context);
    const Tensor hidden = Hidden(call, const_cast<void*>(call.saved));
    const Tensor& grad_hidden = layout.hidden_or_gradient;
    Activate(context, hidden, layout.activated);
    LinearBackward(layout.linear, layout.second, call.grad_output,
                   {grad_hidden, call.grad_parameters[2], call.grad_parameters[3]});
    ParallelRows(*context.threads, 1, hidden.rows, [&](int64_t, int64_t row) {
      const float* from = hidden.Row<float>(row);
      float* grad = grad_hidden.Row<float>(row);
      for (int64_t i = 0; i < hidden.width; ++i) grad[i] *= SiluDerivative(from[i]);
    });
    LinearBackward(layout.linear, layout.first, grad_hidden,
                   {call.grad_inputs[0], call.grad_parameters[0], call.grad_parameters[1]});
    return absl::OkStatus();
  }

 private:
  // linear_1's output, at `data`.
  template <typename Call>
  static Tensor Hidden(const Call& call, void* data) {
    const Tensor& features = call.inputs[0];
    return Tensor::Dense(data, DType::kF32, features.batch, features.rows, call.parameters[0].rows);
  }

  static void Activate(const ExecutionContext& context, const Tensor& hidden,
                       const Tensor& activated) {
    ParallelRows(*context.threads, 1, hidden.rows, [&](int64_t, int64_t row) {
      const float* from = hidden.Row<float>(row);
      float* to = activated.Row<float>(row);
      for (int64_t i = 0; i < hidden.width; ++i) to[i] = Silu(from[i]);
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeProjection() { return std::make_shared<TimeProjection>(); }
std::shared_ptr<const Operation> MakeTimeEmbedder() { return std::make_shared<TimeEmbedder>(); }

}  // namespace plumbline::candidate
