// kRope of the provider: rotary position embedding, rotate-half, over the first 6 F channels of
// each head.
//
//   x (batch, R, heads * D) bfloat16, position_ids (1, R, 3) float64 -> (batch, R, heads * D)
//   angle(axis, j) = float32(position) * inv_freq_j in float32, j < F; cos and sin in float32
//   (CUDA's cosf and sinf), each rounded to bfloat16
//   forward   y1 = round(round(x1 cos) + round(-x2 sin)), y2 = round(round(x2 cos) + round(x1
//   sin)),
//             x1 and x2 the halves of 3 F channels; the other channels pass
//   backward  dx1 = round(round(g1 cos) + round(g2 sin)), dx2 = round(round(g2 cos) - round(g1
//             sin)); the other channels pass. PyTorch adds the two parts of a head padded with
//             zeros, so no gradient is -0.
// No reductions.
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/cuda/rounding.cuh"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

constexpr int kAxes = 3;
constexpr int kThreads = 256;
constexpr int kMostHalf = kAxes * cuda::kMostRotaryFrequencies;

// A block a row of every item; its threads share the row's cosines and sines.
template <bool kBackward>
__global__ void __launch_bounds__(kThreads)
    RotateKernel(View<const bf16> from, View<const double> positions,
                 cuda::RotaryFrequencies frequencies, int64_t batch, int width, int head_width,
                 View<bf16> to) {
  __shared__ float cosines[kMostHalf];
  __shared__ float sines[kMostHalf];
  const int64_t row = blockIdx.x;
  const int half = kAxes * frequencies.count;
  for (int i = threadIdx.x; i < half; i += kThreads) {
    const float angle = static_cast<float>(positions.Row(row)[i / frequencies.count]) *
                        frequencies.inverse[i % frequencies.count];
    cosines[i] = RoundThroughBf16(cosf(angle));
    sines[i] = RoundThroughBf16(sinf(angle));
  }
  __syncthreads();
  for (int64_t item = 0; item < batch; ++item) {
    const bf16* const x = from.Row(row, item);
    bf16* const y = to.Row(row, item);
    for (int column = threadIdx.x; column < width; column += kThreads) {
      const int channel = column % head_width;
      float value = cuda::Widen(x[column]);
      if (channel < 2 * half) {
        const bool first = channel < half;
        const int angle = first ? channel : channel - half;
        const float other = cuda::Widen(first ? x[column + half] : x[column - half]);
        const bool negative = first != kBackward;
        value = RoundThroughBf16(value * cosines[angle]) +
                RoundThroughBf16((negative ? -other : other) * sines[angle]);
      }
      y[column] = cuda::RoundToBf16(kBackward ? value + 0.0f : value);
    }
  }
}

class Rope final : public ProviderOperation {
 public:
  Rope() : ProviderOperation(OpKind::kRope) {}

  absl::Status Check(const ForwardCall& call) const override {
    const absl::Status checked = ProviderOperation::Check(call);
    return checked.ok() ? cuda::CheckRotaryFrequencies("provider Rope", call.attributes) : checked;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Rotate<false>(context, call.inputs[0], call.inputs[1], call.attributes, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    return Rotate<true>(context, call.grad_output, call.inputs[1], call.attributes,
                        call.grad_inputs[0]);
  }

 private:
  template <bool kBackward>
  static absl::Status Rotate(const ExecutionContext& context, const Tensor& from,
                             const Tensor& positions, const Attributes& attributes,
                             const Tensor& to) {
    if (from.NumElements() == 0) return absl::OkStatus();
    RotateKernel<kBackward><<<static_cast<unsigned>(from.rows), kThreads, 0, Stream(context)>>>(
        View<const bf16>(from), View<const double>(positions),
        cuda::MakeRotaryFrequencies(attributes), from.batch, static_cast<int>(from.width),
        static_cast<int>(attributes.head_width), View<bf16>(to));
    return LaunchStatus("provider Rope");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::provider_cuda
