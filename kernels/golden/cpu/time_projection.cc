// kTimeProjection of the golden.
//
//   timestep(T, 1) -> (T, 2 F): cos(t f_i), then sin(t f_i), i < F
// f_i = exp(-ln(10000) i / F), and t f_i, one float32 rounding an operation: that evaluation is the
// model's, as diffusers' get_timestep_embedding has it. No sums.
#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::golden {
namespace {

constexpr float kMinusLogMaximumPeriod = -9.210340371976182736f;  // -ln 10000

class TimeProjection final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kTimeProjection, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& timestep = call.inputs[0];
    return check.Type("timestep", timestep, {DType::kF32})
        .Shape("timestep", timestep, CallCheck::kAny, CallCheck::kAny, 1)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, timestep.batch, timestep.rows, CallCheck::kAny)
        .That(call.output.width % 2 == 0, "the output's width must be even")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const int64_t frequencies = call.output.width / 2;
    ForEachRow(
        *context.threads, call.output.batch, call.output.rows, [&](int64_t item, int64_t row) {
          const float timestep = call.inputs[0].Row<float>(row, item)[0];
          float* const output = call.output.Row<float>(row, item);
          for (int64_t i = 0; i < frequencies; ++i) {
            const float exponent =
                kMinusLogMaximumPeriod * static_cast<float>(i) / static_cast<float>(frequencies);
            const float angle = timestep * Exp(exponent);
            output[i] = Cos(angle);
            output[frequencies + i] = Sin(angle);
          }
        });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeProjection() { return std::make_shared<TimeProjection>(); }

}  // namespace plumbline::golden
