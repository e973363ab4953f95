// kDecoderRope: rotate-half over the first 6 F channels of each head.
//
//   x(R, heads * D), position_ids(R, 3) float64 -> (R, heads * D)
//   angle(axis, j) = float32(position) * inv_freq_j in float32, inv_freq_j = 1 / theta^(j / F), j <
//   F; angle a = axis * F + j turns channels a and a + 3 F of the head
//   y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin; the other channels pass
// Rounding: y, once; with Real = float every operation, cos and sin included. No sums.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_ROPE_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_ROPE_H_

#include <algorithm>
#include <array>

#include "kernels/decoders/cpu/arithmetic.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::decoders {

template <typename Arithmetic>
class Rope final : public DecoderOperation<Arithmetic, OpKind::kDecoderRope> {
  using Real = typename Arithmetic::Real;

  static constexpr int64_t kAxes = 3;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t frequencies = call.attributes.rotary_frequencies;
    const int64_t half = kAxes * frequencies;
    const int64_t head_width = call.attributes.head_width;
    std::array<float, kMostFrequencies> inverse_frequencies;
    const double log_theta = Log(static_cast<double>(call.attributes.rotary_theta));
    for (int64_t j = 0; j < frequencies; ++j) {
      const float exponent = static_cast<float>(2 * j) / static_cast<float>(2 * frequencies);
      inverse_frequencies[j] = 1.0f / static_cast<float>(Exp(exponent * log_theta));
    }
    ForEachRow(context, x, [&](int64_t item, int64_t row) {
      std::array<Real, kAxes * kMostFrequencies> cosines;
      std::array<Real, kAxes * kMostFrequencies> sines;
      for (int64_t axis = 0; axis < kAxes; ++axis) {
        const float position = static_cast<float>(call.inputs[1].Row<double>(row)[axis]);
        for (int64_t j = 0; j < frequencies; ++j) {
          const float angle = position * inverse_frequencies[j];
          cosines[axis * frequencies + j] = static_cast<Real>(Cos(static_cast<double>(angle)));
          sines[axis * frequencies + j] = static_cast<Real>(Sin(static_cast<double>(angle)));
        }
      }
      for (int64_t first = 0; first < x.width; first += head_width) {
        const float* const x1 = x.Row<float>(row, item) + first;
        const float* const x2 = x1 + half;
        float* const y1 = call.output.Row<float>(row, item) + first;
        float* const y2 = y1 + half;
        for (int64_t i = 0; i < half; ++i) {
          y1[i] = static_cast<float>(x1[i] * cosines[i] - x2[i] * sines[i]);
          y2[i] = static_cast<float>(x2[i] * cosines[i] + x1[i] * sines[i]);
        }
        std::copy(x1 + 2 * half, x1 + head_width, y1 + 2 * half);
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_ROPE_H_
