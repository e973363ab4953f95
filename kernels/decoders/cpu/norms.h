// kDecoderRmsNorm, kDecoderHeadNorm and kDecoderLayerNorm.
//
//   x(R, W)[, weight(1, W)[, bias(1, W)]] -> (R, W)
//   RMS    r = 1 / sqrt(mean of x^2 + epsilon); y = x r [* weight]; of a row, or of each head
//   layer  m = mean of x; r = 1 / sqrt(mean of (x - m)^2 + epsilon); y = (x - m) r * weight + bias
// Rounding: y, once; with Real = float every operation. Order of the sums: the lanes of
// kernels/cpu/row_reductions.h.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_NORMS_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_NORMS_H_

#include <cmath>

#include "kernels/cpu/row_reductions.h"
#include "kernels/decoders/cpu/arithmetic.h"

namespace plumbline::decoders {

template <typename Real>
Real ReciprocalRms(const float* x, int64_t size, float epsilon) {
  const Real mean = RowSumOfSquares<Real>(x, size) / static_cast<Real>(size);
  return Real{1} / std::sqrt(mean + static_cast<Real>(epsilon));
}

template <typename Arithmetic>
class RmsNorm final : public DecoderOperation<Arithmetic, OpKind::kDecoderRmsNorm> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const float* const weight = call.parameters[0].Row<float>(0);
    ForEachRow(context, x, [&](int64_t item, int64_t row) {
      const float* const from = x.Row<float>(row, item);
      float* const to = call.output.Row<float>(row, item);
      const Real reciprocal = ReciprocalRms<Real>(from, x.width, call.attributes.epsilon);
      for (int64_t i = 0; i < x.width; ++i) {
        to[i] = static_cast<float>(static_cast<Real>(from[i]) * reciprocal *
                                   static_cast<Real>(weight[i]));
      }
    });
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class HeadNorm final : public DecoderOperation<Arithmetic, OpKind::kDecoderHeadNorm> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    ForEachRow(context, x, [&](int64_t item, int64_t row) {
      for (int64_t first = 0; first < x.width; first += head_width) {
        const float* const from = x.Row<float>(row, item) + first;
        float* const to = call.output.Row<float>(row, item) + first;
        const Real reciprocal = ReciprocalRms<Real>(from, head_width, call.attributes.epsilon);
        for (int64_t i = 0; i < head_width; ++i)
          to[i] = static_cast<float>(static_cast<Real>(from[i]) * reciprocal);
      }
    });
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class LayerNorm final : public DecoderOperation<Arithmetic, OpKind::kDecoderLayerNorm> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const float* const weight = call.parameters[0].Row<float>(0);
    const float* const bias = call.parameters[1].Row<float>(0);
    const Real size = static_cast<Real>(x.width);
    ForEachRow(context, x, [&](int64_t item, int64_t row) {
      const float* const from = x.Row<float>(row, item);
      float* const to = call.output.Row<float>(row, item);
      const Real mean = RowSum<Real>(from, x.width) / size;
      const auto centred = [&](int64_t i) { return static_cast<Real>(from[i]) - mean; };
      const Real variance =
          SumInLanes<Real>(x.width, [&](int64_t i) { return centred(i) * centred(i); }) / size;
      const Real reciprocal =
          Real{1} / std::sqrt(variance + static_cast<Real>(call.attributes.epsilon));
      for (int64_t i = 0; i < x.width; ++i) {
        to[i] = static_cast<float>(centred(i) * reciprocal * static_cast<Real>(weight[i]) +
                                   static_cast<Real>(bias[i]));
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_NORMS_H_
