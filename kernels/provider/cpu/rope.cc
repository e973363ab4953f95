// kRope of the provider: rotary position embedding, rotate-half, over the first 6 F channels of
// each head.
//
//   x(R, heads * D) bfloat16, position_ids(R, 3) float64 -> (R, heads * D)
//   angle(axis, j) = float32(position) * inv_freq_j in float32, j < F; cos and sin in float32, each
//   rounded to bfloat16
//   forward   out1 = round(round(x1 cos) - round(x2 sin)), out2 = round(round(x2 cos) + round(x1
//             sin)), x1 and x2 the halves of 3 F channels; the other channels pass
//   backward  dx1 = round(round(g1 cos) + round(g2 sin)), dx2 = round(round(g2 cos) - round(g1
//   sin));
//             the other channels pass. PyTorch adds the two parts of a head padded with zeros, so
//             no gradient is -0.
// No reductions.
#include <array>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/elementary.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kMaxHalf = 128;  // half of the rotating channels of a head
constexpr int64_t kRowRun = 16;

// The rotation of one row: cos and sin of the 3 F angles, as rounded to bfloat16.
struct Rotation {
  std::array<float, kMaxHalf> cosines;
  std::array<float, kMaxHalf> sines;
};

class Rope : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kRope, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    const int64_t half = 3 * call.attributes.rotary_frequencies;
    return check.Type("x", x, {DType::kBF16})
        .Type("position_ids", call.inputs[1], {DType::kF64})
        .Shape("position_ids", call.inputs[1], 1, x.rows, 3)
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .That(head_width > 0 && x.width % head_width == 0,
              "the width of x must be a multiple of head_width")
        .That(half > 0 && 2 * half <= head_width && half <= kMaxHalf,
              "6 rotary_frequencies must be at least 6 and at most head_width and 256")
        .That(call.attributes.rotary_theta > 0, "rotary_theta must be positive")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Rotate<false>(context, call.inputs[0], call.inputs[1], call.attributes, call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull()) {
      Rotate<true>(context, call.grad_output, call.inputs[1], call.attributes, call.grad_inputs[0]);
    }
    return absl::OkStatus();
  }

 private:
  // 1 / theta^(j / F) as PyTorch evaluates it: the power rounded to float32, then its reciprocal.
  static std::array<float, kMaxHalf> InverseFrequencies(const Attributes& attributes) {
    std::array<float, kMaxHalf> frequencies = {};
    const int64_t count = attributes.rotary_frequencies;
    const double log_theta = Log(static_cast<double>(attributes.rotary_theta));
    for (int64_t j = 0; j < count; ++j) {
      const float exponent = static_cast<float>(2 * j) / static_cast<float>(2 * count);
      frequencies[j] = 1.0f / static_cast<float>(Exp(static_cast<double>(exponent) * log_theta));
    }
    return frequencies;
  }

  template <bool kBackward>
  static void Rotate(const ExecutionContext& context, const Tensor& x, const Tensor& position_ids,
                     const Attributes& attributes, const Tensor& output) {
    const int64_t frequencies = attributes.rotary_frequencies;
    const int64_t half = 3 * frequencies;
    const std::array<float, kMaxHalf> inverse_frequencies = InverseFrequencies(attributes);
    context.threads->ParallelFor(0, x.rows, kRowRun, [&](int64_t first_row, int64_t end_row) {
      Rotation rotation;
      for (int64_t row = first_row; row < end_row; ++row) {
        const double* const positions = position_ids.Row<double>(row);
        for (int64_t i = 0; i < half; ++i) {
          const float angle =
              static_cast<float>(positions[i / frequencies]) * inverse_frequencies[i % frequencies];
          rotation.cosines[i] = RoundThroughBf16(Cos(angle));
          rotation.sines[i] = RoundThroughBf16(Sin(angle));
        }
        for (int64_t item = 0; item < x.batch; ++item) {
          for (int64_t channel = 0; channel < x.width; channel += attributes.head_width) {
            RotateHead<kBackward>(rotation, half, attributes.head_width,
                                  x.Row<bfloat16>(row, item) + channel,
                                  output.Row<bfloat16>(row, item) + channel);
          }
        }
      }
    });
  }

  template <bool kBackward>
  static void RotateHead(const Rotation& rotation, int64_t half, int64_t head_width,
                         const bfloat16* x, bfloat16* to) {
    for (int64_t i = 0; i < half; ++i) {
      const float x1 = WidenBf16(x[i]);
      const float x2 = WidenBf16(x[half + i]);
      const float cosine = rotation.cosines[i];
      const float sine = kBackward ? -rotation.sines[i] : rotation.sines[i];
      const float out1 = RoundThroughBf16(x1 * cosine) - RoundThroughBf16(x2 * sine);
      const float out2 = RoundThroughBf16(x2 * cosine) + RoundThroughBf16(x1 * sine);
      to[i] = RoundToBf16(kBackward ? out1 + 0.0f : out1);
      to[half + i] = RoundToBf16(kBackward ? out2 + 0.0f : out2);
    }
    for (int64_t i = 2 * half; i < head_width; ++i)
      to[i] = kBackward ? RoundToBf16(WidenBf16(x[i]) + 0.0f) : x[i];
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::provider
