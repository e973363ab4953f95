// kSwiGlu of the provider.
//
//   gate_up(R, 2 F) bfloat16: value a, then gate b -> (R, F)
//   forward   s = round(SiLU(b)), SiLU in float32; round(a s)
//   backward  of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32
// No reductions.
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/silu.h"
#include "kernels/provider/cpu/values.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 8;

class SwiGlu : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kSwiGlu, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& gate_up = call.inputs[0];
    return check.Type("gate_up", gate_up, {DType::kBF16})
        .That(gate_up.width % 2 == 0, "the width of gate_up must be even")
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, gate_up.batch, gate_up.rows, gate_up.width / 2)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const int64_t width = call.output.width;
    context.threads->ParallelFor(
        0, gate_up.batch * gate_up.rows, kRowRun, [&](int64_t first, int64_t end) {
          for (int64_t row = first; row < end; ++row) {
            const bfloat16* const value = FlatRow<bfloat16>(gate_up, row);
            const bfloat16* const gate = value + width;
            bfloat16* const to = FlatRow<bfloat16>(call.output, row);
            for (int64_t i = 0; i < width; ++i)
              to[i] = RoundToBf16(WidenBf16(value[i]) * RoundThroughBf16(Silu(WidenBf16(gate[i]))));
          }
        });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    const Tensor& gate_up = call.inputs[0];
    const int64_t width = call.grad_output.width;
    context.threads->ParallelFor(
        0, gate_up.batch * gate_up.rows, kRowRun, [&](int64_t first, int64_t end) {
          for (int64_t row = first; row < end; ++row) {
            const bfloat16* const value = FlatRow<bfloat16>(gate_up, row);
            const bfloat16* const gate = value + width;
            const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row);
            bfloat16* const grad_value = FlatRow<bfloat16>(call.grad_inputs[0], row);
            bfloat16* const grad_gate = grad_value + width;
            for (int64_t i = 0; i < width; ++i) {
              const float g = WidenBf16(grad[i]);
              const float b = WidenBf16(gate[i]);
              const float grad_silu = RoundThroughBf16(g * WidenBf16(value[i]));
              grad_value[i] = RoundToBf16(g * RoundThroughBf16(Silu(b)));
              grad_gate[i] = RoundToBf16(SiluGradient(grad_silu, b));
            }
          }
        });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::provider
