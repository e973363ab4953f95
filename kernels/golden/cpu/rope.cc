// kRope of the golden: rotate-half over the first 6 F channels of each head.
//
//   x(R, heads * D), position_ids(R, 3) float64 -> (R, heads * D)
//   angles    theta^(j / F) rounded to float32, its float32 reciprocal, times float32(position);
//             cos and sin rounded to float32: that evaluation is the model's, as PyTorch has it.
//             Angle a = axis * F + j turns channels a and a + 3 F of the head.
//   forward   y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin; the other channels pass
//   backward  dx1 = g1 cos + g2 sin; dx2 = g2 cos - g1 sin; the other channels pass
// Rounding: each result once. No sums.
#include <algorithm>
#include <array>

#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::golden {
namespace {

constexpr int64_t kMaxFrequencies = 64;
constexpr int64_t kAxes = 3;

class Rope final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kRope, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    const int64_t frequencies = call.attributes.rotary_frequencies;
    return check.Type("x", x, {DType::kF32})
        .Type("position_ids", call.inputs[1], {DType::kF64})
        .Shape("position_ids", call.inputs[1], 1, x.rows, kAxes)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .That(head_width > 0 && x.width % head_width == 0,
              "the width of x must be a multiple of head_width")
        .That(frequencies > 0 && frequencies <= kMaxFrequencies,
              "rotary_frequencies must be 1 to 64")
        .That(2 * kAxes * frequencies <= head_width,
              "6 rotary_frequencies must be at most head_width")
        .That(call.attributes.rotary_theta > 0, "rotary_theta must be above 0")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Rotate(call.inputs[0], call.inputs[1], call.attributes, 1.0, call.output, *context.threads);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    // The transpose of a rotation is the rotation by the opposite angle.
    if (!call.grad_inputs[0].IsNull()) {
      Rotate(call.grad_output, call.inputs[1], call.attributes, -1.0, call.grad_inputs[0],
             *context.threads);
    }
    return absl::OkStatus();
  }

 private:
  static void Rotate(const Tensor& from, const Tensor& positions, const Attributes& attributes,
                     double direction, const Tensor& to, ThreadPool& threads) {
    const int64_t frequencies = attributes.rotary_frequencies;
    const int64_t half = kAxes * frequencies;
    const int64_t head_width = attributes.head_width;
    std::array<float, kMaxFrequencies> inverse_frequencies;
    const double log_theta = Log(static_cast<double>(attributes.rotary_theta));
    for (int64_t j = 0; j < frequencies; ++j) {
      const float exponent = static_cast<float>(2 * j) / static_cast<float>(2 * frequencies);
      inverse_frequencies[j] = 1.0f / static_cast<float>(Exp(exponent * log_theta));
    }
    ForEachRow(threads, from.batch, from.rows, [&](int64_t item, int64_t row) {
      std::array<double, kAxes * kMaxFrequencies> cosines;
      std::array<double, kAxes * kMaxFrequencies> sines;
      for (int64_t axis = 0; axis < kAxes; ++axis) {
        const float position = static_cast<float>(positions.Row<double>(row)[axis]);
        for (int64_t j = 0; j < frequencies; ++j) {
          const float angle = position * inverse_frequencies[j];
          cosines[axis * frequencies + j] = Cos(angle);
          sines[axis * frequencies + j] = direction * Sin(angle);
        }
      }
      for (int64_t first = 0; first < from.width; first += head_width) {
        const float* const x1 = from.Row<float>(row, item) + first;
        const float* const x2 = x1 + half;
        float* const y1 = to.Row<float>(row, item) + first;
        float* const y2 = y1 + half;
        for (int64_t i = 0; i < half; ++i) {
          y1[i] = static_cast<float>(x1[i] * cosines[i] - x2[i] * sines[i]);
          y2[i] = static_cast<float>(x2[i] * cosines[i] + x1[i] * sines[i]);
        }
        std::copy(x1 + 2 * half, x1 + head_width, y1 + 2 * half);
      }
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::golden
