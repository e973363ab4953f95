// kConv1d and kConvTranspose1d, as products of gathered rows.
//
//   kConv1d           x(L, C), weight(N, C K) -> (L, N); result t reads rows t + (k - (K - 1) / 2)
//   *
//                     dilation, k < K
//   kConvTranspose1d  x(L, C), weight(C, N K) -> (L S, N); result t = s S + phase reads rows s + j
//                     through the taps k = phase + (K - S) / 2 - j S, ceil(K / S) of them: a
//                     convolution for each of the S phases
// The rows that a result reads, zeros outside, are put side by side in the order (tap, channel) and
// multiplied by the weights in that order. A normalised weight is weight * (gain / |row of
// weight|). Rounding: y, once; with Real = float the normalised weight, products, sums and the
// bias's sum. Order: products the implementation's, over all taps and channels; |row| in the lanes
// of kernels/cpu/row_reductions.h. kBlock results are one thread's, and which block a result is in
// changes nothing in its sum.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_CONVOLUTION_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_CONVOLUTION_H_

#include <algorithm>
#include <cmath>

#include "kernels/cpu/row_reductions.h"
#include "kernels/decoders/cpu/arithmetic.h"

namespace plumbline::decoders {

inline constexpr int64_t kConvolutionBlock = 64;

// What a row of a weight is multiplied by: 1, or its gain over its norm.
template <typename Real>
Real WeightFactor(const Tensor& weight, const Tensor& gain, int64_t row) {
  if (gain.IsNull()) return Real{1};
  const Real norm = std::sqrt(RowSumOfSquares<Real>(weight.Row<float>(row), weight.width));
  return static_cast<Real>(gain.Row<float>(row)[0]) / norm;
}

// Results first_result, first_result + result_step, ... of every batch item: result number t reads
// row t + offsets(tap) of x, tap < taps, and multiplies by weights(N, taps * C).
template <typename Arithmetic, typename Offset>
void ConvolveGathered(const ExecutionContext& context, const Tensor& x, int64_t taps, Offset offset,
                      const typename Arithmetic::Real* weights, const float* bias,
                      int64_t first_result, int64_t result_step, const Tensor& output,
                      absl::Span<uint8_t> thread_memory, size_t thread_bytes) {
  using Real = typename Arithmetic::Real;
  const int64_t channels = x.width;
  const int64_t width = taps * channels;
  const int64_t blocks = (x.rows + kConvolutionBlock - 1) / kConvolutionBlock;
  context.threads->ParallelForWithSlot(
      0, x.batch * blocks, 1, [&](int64_t task, int64_t, int slot) {
        Scratch scratch(
            thread_memory.subspan(static_cast<size_t>(slot) * thread_bytes, thread_bytes));
        float* const gathered = scratch.Take<float>(kConvolutionBlock * width);
        const int64_t item = task / blocks;
        const int64_t first = task % blocks * kConvolutionBlock;
        const int64_t count = std::min(kConvolutionBlock, x.rows - first);
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t tap = 0; tap < taps; ++tap) {
            float* const to = gathered + i * width + tap * channels;
            const int64_t row = first + i + offset(tap);
            if (row < 0 || row >= x.rows) {
              std::fill(to, to + channels, 0.0f);
            } else {
              const float* const from = x.Row<float>(row, item);
              std::copy(from, from + channels, to);
            }
          }
        }
        Arithmetic::Multiply(
            {count, output.width, width}, {gathered, DType::kF32, width, 1},
            {weights, RealType<Real>(), width, 1},
            [&](int64_t row, int64_t column, int64_t n, const Real* sums) {
              const int64_t result = first_result + (first + row) * result_step;
              float* const to = output.Row<float>(result, item) + column;
              for (int64_t i = 0; i < n; ++i) {
                to[i] = static_cast<float>(
                    bias == nullptr ? sums[i] : sums[i] + static_cast<Real>(bias[column + i]));
              }
            },
            scratch.TakeBytes(Arithmetic::ProductBytes()), *context.threads);
      });
}

template <typename Arithmetic>
size_t ConvolutionThreadBytes(int64_t gathered_width) {
  return Scratch::Bytes<float>(kConvolutionBlock * gathered_width) + Arithmetic::ProductBytes();
}

template <typename Arithmetic>
class Conv1d final : public DecoderOperation<Arithmetic, OpKind::kConv1d> {
  using Real = typename Arithmetic::Real;

 public:
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    const Tensor& weight = call.parameters[0];
    return Scratch::Bytes<Real>(weight.rows * weight.width) +
           static_cast<size_t>(context.threads->num_threads()) *
               ConvolutionThreadBytes<Arithmetic>(weight.width);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const bool normalised = call.attributes.weight_norm;
    const Tensor gain = normalised ? call.parameters[1] : Tensor();
    const size_t biases = call.parameters.size() - (normalised ? 2 : 1);
    const float* const bias = biases == 0 ? nullptr : call.parameters.back().template Row<float>(0);
    const int64_t channels = x.width;
    const int64_t taps = weight.width / channels;
    Scratch scratch(context.workspace);
    Real* const weights = scratch.Take<Real>(weight.rows * weight.width);
    context.threads->ParallelFor(0, weight.rows, kRowGrain, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const Real factor = WeightFactor<Real>(weight, gain, row);
        const float* const from = weight.Row<float>(row);
        Real* const to = weights + row * weight.width;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t k = 0; k < taps; ++k)
            to[k * channels + c] = static_cast<Real>(from[c * taps + k]) * factor;
        }
      }
    });
    const size_t thread_bytes = ConvolutionThreadBytes<Arithmetic>(weight.width);
    ConvolveGathered<Arithmetic>(
        context, x, taps,
        [&](int64_t tap) { return (tap - (taps - 1) / 2) * call.attributes.dilation; }, weights,
        bias, 0, 1, call.output,
        scratch.TakeBytes(static_cast<size_t>(context.threads->num_threads()) * thread_bytes),
        thread_bytes);
    return absl::OkStatus();
  }
};

template <typename Arithmetic>
class ConvTranspose1d final : public DecoderOperation<Arithmetic, OpKind::kConvTranspose1d> {
  using Real = typename Arithmetic::Real;

 public:
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    const int64_t width = TapsOfPhase(call) * call.inputs[0].width;
    return Scratch::Bytes<Real>(call.inputs[0].width) +
           Scratch::Bytes<Real>(call.parameters[2].width * width) +
           static_cast<size_t>(context.threads->num_threads()) *
               ConvolutionThreadBytes<Arithmetic>(width);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const int64_t outputs = call.parameters[2].width;
    const int64_t kernel = weight.width / outputs;
    const int64_t stride = call.attributes.stride;
    const int64_t padding = (kernel - stride) / 2;
    const int64_t channels = x.width;
    const int64_t taps = TapsOfPhase(call);
    const size_t thread_bytes = ConvolutionThreadBytes<Arithmetic>(taps * channels);
    Scratch scratch(context.workspace);
    Real* const factors = scratch.Take<Real>(channels);
    Real* const weights = scratch.Take<Real>(outputs * taps * channels);
    const absl::Span<uint8_t> thread_memory =
        scratch.TakeBytes(static_cast<size_t>(context.threads->num_threads()) * thread_bytes);
    context.threads->ParallelFor(0, channels, kRowGrain, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c)
        factors[c] = WeightFactor<Real>(weight, call.parameters[1], c);
    });
    for (int64_t phase = 0; phase < stride; ++phase) {
      // Result s * stride + phase = row * stride + k - padding, row = s + nearest - tap.
      const int64_t nearest = (phase + padding) / stride;
      const int64_t first_tap = (phase + padding) % stride;
      context.threads->ParallelFor(0, outputs, kRowGrain, [&](int64_t first, int64_t last) {
        for (int64_t n = first; n < last; ++n) {
          for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t k = first_tap + tap * stride;
            Real* const to = weights + (n * taps + tap) * channels;
            for (int64_t c = 0; c < channels; ++c) {
              to[c] = k < kernel
                          ? static_cast<Real>(weight.Row<float>(c)[n * kernel + k]) * factors[c]
                          : Real{0};
            }
          }
        }
      });
      ConvolveGathered<Arithmetic>(
          context, x, taps, [&](int64_t tap) { return nearest - tap; }, weights,
          call.parameters[2].template Row<float>(0), phase, stride, call.output, thread_memory,
          thread_bytes);
    }
    return absl::OkStatus();
  }

 private:
  static int64_t TapsOfPhase(const ForwardCall& call) {
    const int64_t kernel = call.parameters[0].width / call.parameters[2].width;
    return (kernel + call.attributes.stride - 1) / call.attributes.stride;
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_CONVOLUTION_H_
