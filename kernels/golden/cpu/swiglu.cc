// kSwiGlu of the golden.
//
//   gate_up(R, 2 F): value a, then gate b -> (R, F)
//   forward   y = a SiLU(b)
//   backward  da = dy SiLU(b); db = dy a SiLU'(b)
// Rounding: each result once. No sums.
#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/golden/cpu/silu.h"

namespace plumbline::golden {
namespace {

class SwiGlu final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kSwiGlu, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& gate_up = call.inputs[0];
    return check.Type("gate_up", gate_up, {DType::kF32})
        .That(gate_up.width % 2 == 0, "the width of gate_up must be even")
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, gate_up.batch, gate_up.rows, gate_up.width / 2)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    ForEachRow(*context.threads, output.batch, output.rows, [&](int64_t item, int64_t row) {
      const float* const value = call.inputs[0].Row<float>(row, item);
      const float* const gate = value + output.width;
      float* const to = output.Row<float>(row, item);
      for (int64_t i = 0; i < output.width; ++i)
        to[i] = static_cast<float>(value[i] * Silu(gate[i]));
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad = call.grad_output;
    const Tensor& grad_gate_up = call.grad_inputs[0];
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    ForEachRow(*context.threads, grad.batch, grad.rows, [&](int64_t item, int64_t row) {
      const float* const value = call.inputs[0].Row<float>(row, item);
      const float* const gate = value + grad.width;
      const float* const g = grad.Row<float>(row, item);
      float* const grad_value = grad_gate_up.Row<float>(row, item);
      float* const grad_gate = grad_value + grad.width;
      for (int64_t i = 0; i < grad.width; ++i) {
        grad_value[i] = static_cast<float>(g[i] * Silu(gate[i]));
        grad_gate[i] =
            static_cast<float>(static_cast<double>(g[i]) * value[i] * SiluDerivative(gate[i]));
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::golden
