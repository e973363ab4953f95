#include "kernels/candidate/cpu/swiglu.h"

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/silu.h"
#include "kernels/cpu/call_check.h"

namespace plumbline::candidate {
namespace {

class SwiGlu final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kSwiGlu, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& gate_up = call.inputs[0];
    return check.Type("gate_up", gate_up, {DType::kBF16})
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, gate_up.batch, gate_up.rows, gate_up.width / 2)
        .That(gate_up.width % 2 == 0,
              absl::StrCat("the width of gate_up, ", gate_up.width, ", must be even"))
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    ParallelRows(*context.threads, gate_up.batch, gate_up.rows, [&](int64_t item, int64_t row) {
      SwiGluRow(gate_up.Row<bfloat16>(row, item), gate_up.width / 2,
                call.output.Row<bfloat16>(row, item));
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const int64_t width = gate_up.width / 2;
    ParallelRows(*context.threads, gate_up.batch, gate_up.rows, [&](int64_t item, int64_t row) {
      const bfloat16* a = gate_up.Row<bfloat16>(row, item);
      const bfloat16* b = a + width;
      const bfloat16* g = call.grad_output.Row<bfloat16>(row, item);
      bfloat16* da = grad_gate_up.Row<bfloat16>(row, item);
      bfloat16* db = da + width;
      for (int64_t i = 0; i < width; ++i) {
        const float grad = WidenBf16(g[i]);
        const float gate = WidenBf16(b[i]);
        da[i] = RoundToBf16(grad * RoundThroughBf16(Silu(gate)));
        db[i] = RoundToBf16(RoundThroughBf16(grad * WidenBf16(a[i])) * SiluDerivative(gate));
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

void SwiGluRow(const bfloat16* gate_up, int64_t width, bfloat16* output) {
  const bfloat16* a = gate_up;
  const bfloat16* b = gate_up + width;
  for (int64_t i = 0; i < width; ++i) {
    output[i] = RoundToBf16(WidenBf16(a[i]) * RoundThroughBf16(Silu(WidenBf16(b[i]))));
  }
}

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::candidate
