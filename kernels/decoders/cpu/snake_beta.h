// kSnakeBeta: BigVGAN's activation between an upsampling and a downsampling by two.
//
//   x(L, C), alpha(1, C), beta(1, C), up(1, K), down(1, K), K even -> (L, C)
//   u(j) = 2 * sum over i of x(i) up(j + P - 2 i), j < 2 L, i from -(K / 2 - 1), x repeated beyond
//          its ends, P = (K - 2) + (K - 2) / 2 - 2 (K / 2 - 1) = K / 2 - 1
//   v = u + sin(exp(alpha) u)^2 * (1 / (exp(beta) + 1e-9))
//   y(t) = sum over k of v(2 t + k - (K / 2 - 1)) down(k), v repeated beyond its ends
// Rounding: y, once; with Real = float every operation. Order: i and k ascending, a product and a
// sum each. kBlock results are one thread's, and which block a result is in changes nothing in it.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_SNAKE_BETA_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_SNAKE_BETA_H_

#include <algorithm>

#include "kernels/decoders/cpu/arithmetic.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::decoders {

template <typename Arithmetic>
class SnakeBeta final : public DecoderOperation<Arithmetic, OpKind::kSnakeBeta> {
  using Real = typename Arithmetic::Real;

  static constexpr int64_t kBlock = 64;

  enum Parameter { kAlpha, kBeta, kUp, kDown };

 public:
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return 2 * Scratch::Bytes<Real>(call.inputs[0].width) +
           static_cast<size_t>(context.threads->num_threads()) * ActivatedBytes(call);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t channels = x.width;
    const int64_t taps = call.parameters[kUp].width;
    const int64_t half = taps / 2 - 1;
    Scratch scratch(context.workspace);
    Real* const alpha = scratch.Take<Real>(channels);
    Real* const magnitude = scratch.Take<Real>(channels);
    const size_t thread_bytes = ActivatedBytes(call);
    const absl::Span<uint8_t> thread_memory =
        scratch.TakeBytes(static_cast<size_t>(context.threads->num_threads()) * thread_bytes);
    for (int64_t c = 0; c < channels; ++c) {
      alpha[c] = Exp(static_cast<Real>(call.parameters[kAlpha].template Row<float>(0)[c]));
      const Real beta = Exp(static_cast<Real>(call.parameters[kBeta].template Row<float>(0)[c]));
      magnitude[c] = Real{1} / (beta + static_cast<Real>(1e-9));
    }
    const float* const down = call.parameters[kDown].template Row<float>(0);
    const int64_t blocks = (x.rows + kBlock - 1) / kBlock;
    context.threads->ParallelForWithSlot(
        0, x.batch * blocks, 1, [&](int64_t task, int64_t, int slot) {
          Scratch own(
              thread_memory.subspan(static_cast<size_t>(slot) * thread_bytes, thread_bytes));
          Real* const activated = own.Take<Real>((2 * kBlock + taps) * channels);
          const int64_t item = task / blocks;
          const int64_t first = task % blocks * kBlock;
          const int64_t count = std::min(kBlock, x.rows - first);
          // v(begin + i) in row i.
          const int64_t begin = std::max<int64_t>(0, 2 * first - half);
          const int64_t end = std::min(2 * x.rows, 2 * (first + count - 1) - half + taps);
          for (int64_t j = begin; j < end; ++j) {
            Activate(call, item, j, half, alpha, magnitude, activated + (j - begin) * channels);
          }
          for (int64_t t = first; t < first + count; ++t) {
            float* const to = call.output.Row<float>(t, item);
            for (int64_t c = 0; c < channels; ++c) {
              Real sum{0};
              for (int64_t k = 0; k < taps; ++k) {
                const int64_t j = std::clamp<int64_t>(2 * t + k - half, 0, 2 * x.rows - 1);
                sum += activated[(j - begin) * channels + c] * static_cast<Real>(down[k]);
              }
              to[c] = static_cast<float>(sum);
            }
          }
        });
    return absl::OkStatus();
  }

 private:
  static size_t ActivatedBytes(const ForwardCall& call) {
    return Scratch::Bytes<Real>((2 * kBlock + call.parameters[kUp].width) * call.inputs[0].width);
  }

  // v(j) of every channel.
  static void Activate(const ForwardCall& call, int64_t item, int64_t j, int64_t half,
                       const Real* alpha, const Real* magnitude, Real* to) {
    const Tensor& x = call.inputs[0];
    const int64_t taps = call.parameters[kUp].width;
    const float* const up = call.parameters[kUp].template Row<float>(0);
    // up(j + shift - 2 i) with i counted in x; shift makes the filter's middle stand on j.
    const int64_t shift = half;
    // The least i with j + shift - 2 i < taps.
    const int64_t first = (j + shift - taps + 2) >> 1;
    const int64_t last = (j + shift) >> 1;
    std::fill(to, to + x.width, Real{0});
    for (int64_t i = first; i <= last; ++i) {
      const Real tap = up[j + shift - 2 * i];
      const float* const from = x.Row<float>(std::clamp<int64_t>(i, 0, x.rows - 1), item);
      for (int64_t c = 0; c < x.width; ++c) to[c] += static_cast<Real>(from[c]) * tap;
    }
    for (int64_t c = 0; c < x.width; ++c) {
      const Real u = Real{2} * to[c];
      const Real sine = Sin(alpha[c] * u);
      to[c] = u + magnitude[c] * (sine * sine);
    }
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_SNAKE_BETA_H_
