// kTimeProjection of the provider.
//
//   timestep(T, 1) float32 -> (T, 2 F) float32
//   f_i = exp(float32(-ln 10000) * i / F), i < F; cos(t f_i), then sin(t f_i); every operation in
//   float32
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/numerics/elementary.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline::provider {
namespace {

constexpr float kMinusLogMaximumPeriod = -9.210340371976184f;  // -ln 10000

class TimeProjection : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kTimeProjection, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& timestep = call.inputs[0];
    return check.Type("timestep", timestep, {DType::kF32})
        .Shape("timestep", timestep, 1, CallCheck::kAny, 1)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, 1, timestep.rows, CallCheck::kAny)
        .That(call.output.width % 2 == 0, "the output's width must be even")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const int64_t frequencies = call.output.width / 2;
    for (int64_t row = 0; row < call.output.rows; ++row) {
      const float timestep = *call.inputs[0].Row<float>(row);
      float* const cosines = call.output.Row<float>(row);
      float* const sines = cosines + frequencies;
      for (int64_t i = 0; i < frequencies; ++i) {
        const float exponent =
            kMinusLogMaximumPeriod * static_cast<float>(i) / static_cast<float>(frequencies);
        const float angle = timestep * Exp(exponent);
        cosines[i] = Cos(angle);
        sines[i] = Sin(angle);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeProjection() { return std::make_shared<TimeProjection>(); }

}  // namespace plumbline::provider
