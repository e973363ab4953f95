// kDecoderRope: rotate-half over the first 6 F channels of each head.
//
//   x (batch, R, heads * D), position_ids (1, R, 3) float64
//   angle = float32(position) * inv_freq in float32; y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin
// Rounding: y, once; in float32 cos, sin, every product and the sum, with autocast all of them to
// float16. No sums.
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::RotaryFrequencies;
using cuda::View;

// A thread a pair of channels, or a channel that passes.
template <typename A>
__global__ void __launch_bounds__(kThreads)
    RopeKernel(View<const float> x, View<const double> positions, RotaryFrequencies frequencies,
               int64_t width, int64_t head_width, int64_t count, View<float> output) {
  using Real = typename A::Real;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t half = 3 * frequencies.count;
  const int64_t of_head = head_width - half;  // Threads of one head.
  const int64_t heads = width / head_width;
  const int64_t flat_row = index / (heads * of_head);
  const int64_t head = index / of_head % heads;
  const int64_t i = index % of_head;
  const float* const from = x.FlatRow(flat_row) + head * head_width;
  float* const to = output.FlatRow(flat_row) + head * head_width;
  if (i >= half) {
    to[i + half] = from[i + half];
    return;
  }
  const double* const position = positions.Row(flat_row % x.rows);
  const float angle = static_cast<float>(position[i / frequencies.count]) *
                      frequencies.inverse[i % frequencies.count];
  const Real x1 = from[i];
  const Real x2 = from[half + i];
  if (A::kHalf) {
    const float c = RoundThroughHalf(static_cast<float>(cos(static_cast<double>(angle))));
    const float s = RoundThroughHalf(static_cast<float>(sin(static_cast<double>(angle))));
    const float f1 = static_cast<float>(x1), f2 = static_cast<float>(x2);
    to[i] = RoundThroughHalf(RoundThroughHalf(f1 * c) - RoundThroughHalf(f2 * s));
    to[half + i] = RoundThroughHalf(RoundThroughHalf(f2 * c) + RoundThroughHalf(f1 * s));
  } else {
    const Real c = static_cast<Real>(cos(static_cast<double>(angle)));
    const Real s = static_cast<Real>(sin(static_cast<double>(angle)));
    to[i] = static_cast<float>(x1 * c - x2 * s);
    to[half + i] = static_cast<float>(x2 * c + x1 * s);
  }
}

class Rope final : public DecoderOperation {
 public:
  explicit Rope(const Flavour& flavour) : DecoderOperation(flavour, OpKind::kDecoderRope) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    const RotaryFrequencies frequencies = cuda::MakeRotaryFrequencies(call.attributes);
    const int64_t count =
        x.batch * x.rows * (x.width / head_width) * (head_width - 3 * frequencies.count);
    if (count == 0) return absl::OkStatus();
    return ForArithmetic(flavour_.arithmetic, [&](auto arithmetic) {
      RopeKernel<decltype(arithmetic)><<<BlocksFor(count), kThreads, 0, Stream(context)>>>(
          View<const float>(x), View<const double>(call.inputs[1]), frequencies, x.width,
          head_width, count, View<float>(call.output));
      return LaunchStatus("a decoder's rotary embedding");
    });
  }
};

}  // namespace

OperationPointer MakeRope(const Flavour& flavour) { return std::make_shared<Rope>(flavour); }

}  // namespace plumbline::decoders_cuda
