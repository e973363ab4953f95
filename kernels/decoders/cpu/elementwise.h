// kDecoderSwiGlu, kDecoderResidual, kAppendTokens and kMean.
//
//   gate_up(R, 2 F) -> (R, F): value * (gate / (1 + exp(-gate)))
//   x(R, W), branch(R, W)[, scale(1, W)] -> (R, W): x + branch [* scale]
//   x(R, W), tokens(1, n W) -> (R + n + 1, W): x, the tokens, a row of zeros
//   n times (L, C) -> (L, C): their sum in order, divided by n
// Rounding: each value once; with Real = float every operation.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_ELEMENTWISE_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_ELEMENTWISE_H_

#include <algorithm>

#include "kernels/decoders/cpu/arithmetic.h"

namespace plumbline::decoders {

template <typename Arithmetic>
class SwiGlu final : public DecoderOperation<Arithmetic, OpKind::kDecoderSwiGlu> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    ForEachRow(context, output, [&](int64_t item, int64_t row) {
      const float* const value = call.inputs[0].template Row<float>(row, item);
      const float* const gate = value + output.width;
      float* const to = output.Row<float>(row, item);
      for (int64_t i = 0; i < output.width; ++i) {
        const Real g = gate[i];
        to[i] = static_cast<float>(static_cast<Real>(value[i]) * (g / (Real{1} + ExpOf(-g))));
      }
    });
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class Residual final : public DecoderOperation<Arithmetic, OpKind::kDecoderResidual> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const float* const scale =
        call.parameters.empty() ? nullptr : call.parameters[0].template Row<float>(0);
    ForEachRow(context, x, [&](int64_t item, int64_t row) {
      const float* const from = x.Row<float>(row, item);
      const float* const branch = call.inputs[1].template Row<float>(row, item);
      float* const to = call.output.Row<float>(row, item);
      for (int64_t i = 0; i < x.width; ++i) {
        const Real b = branch[i];
        to[i] = static_cast<float>(static_cast<Real>(from[i]) +
                                   (scale == nullptr ? b : b * static_cast<Real>(scale[i])));
      }
    });
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class AppendTokens final : public DecoderOperation<Arithmetic, OpKind::kAppendTokens> {
 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t tokens = call.parameters[0].width / x.width;
    ForEachRow(context, call.output, [&](int64_t item, int64_t row) {
      float* const to = call.output.Row<float>(row, item);
      if (row == x.rows + tokens) {
        std::fill(to, to + x.width, 0.0f);
        return;
      }
      const float* const from =
          row < x.rows ? x.Row<float>(row, item)
                       : call.parameters[0].template Row<float>(0) + (row - x.rows) * x.width;
      std::copy(from, from + x.width, to);
    });
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class Mean final : public DecoderOperation<Arithmetic, OpKind::kMean> {
  using Real = typename Arithmetic::Real;

 public:
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Real count = static_cast<Real>(call.inputs.size());
    ForEachRow(context, call.output, [&](int64_t item, int64_t row) {
      float* const to = call.output.Row<float>(row, item);
      for (int64_t i = 0; i < call.output.width; ++i) {
        Real sum = call.inputs[0].template Row<float>(row, item)[i];
        for (size_t j = 1; j < call.inputs.size(); ++j)
          sum += static_cast<Real>(call.inputs[j].template Row<float>(row, item)[i]);
        to[i] = static_cast<float>(sum / count);
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_ELEMENTWISE_H_
