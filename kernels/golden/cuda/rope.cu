// kRope of the golden: rotate-half over the first 6 F channels of each head.
//
//   x (batch, R, heads * D), position_ids (1, R, 3) float64 -> (batch, R, heads * D)
//   forward   y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin; the other channels pass
//   backward  the rotation by the opposite angle
// Rounding: the inverse frequencies and the angle float32(position) * inv_freq, and their cosine
// and sine, are rounded to float32: that evaluation is the model's; cos and sin are float64 inside.
// Each result once. No sums.
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

constexpr int kAxes = 3;
constexpr int kThreads = 256;
constexpr int kMostHalf = kAxes * cuda::kMostRotaryFrequencies;

// A block a row of every item; its threads share the row's cosines and sines.
__global__ void __launch_bounds__(kThreads)
    RotateKernel(View<const float> from, View<const double> positions,
                 cuda::RotaryFrequencies frequencies, int64_t batch, int width, int head_width,
                 double direction, View<float> to) {
  __shared__ float cosines[kMostHalf];
  __shared__ float sines[kMostHalf];
  const int64_t row = blockIdx.x;
  const int half = kAxes * frequencies.count;
  for (int i = threadIdx.x; i < half; i += kThreads) {
    const float angle = static_cast<float>(positions.Row(row)[i / frequencies.count]) *
                        frequencies.inverse[i % frequencies.count];
    cosines[i] = static_cast<float>(cos(static_cast<double>(angle)));
    sines[i] = static_cast<float>(sin(static_cast<double>(angle)));
  }
  __syncthreads();
  for (int64_t item = 0; item < batch; ++item) {
    const float* const x = from.Row(row, item);
    float* const y = to.Row(row, item);
    for (int column = threadIdx.x; column < width; column += kThreads) {
      const int channel = column % head_width;
      if (channel >= 2 * half) {
        y[column] = x[column];
        continue;
      }
      const bool first = channel < half;
      const int angle = first ? channel : channel - half;
      const double other = first ? -static_cast<double>(x[column + half]) : x[column - half];
      y[column] = static_cast<float>(static_cast<double>(x[column]) * cosines[angle] +
                                     other * (direction * sines[angle]));
    }
  }
}

class Rope final : public GoldenOperation {
 public:
  Rope() : GoldenOperation(OpKind::kRope) {}

  absl::Status Check(const ForwardCall& call) const override {
    const absl::Status checked = GoldenOperation::Check(call);
    return checked.ok() ? cuda::CheckRotaryFrequencies("golden Rope", call.attributes) : checked;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Rotate(context, call.inputs[0], call.inputs[1], call.attributes, 1.0, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    return Rotate(context, call.grad_output, call.inputs[1], call.attributes, -1.0,
                  call.grad_inputs[0]);
  }

 private:
  static absl::Status Rotate(const ExecutionContext& context, const Tensor& from,
                             const Tensor& positions, const Attributes& attributes,
                             double direction, const Tensor& to) {
    if (from.NumElements() == 0) return absl::OkStatus();
    RotateKernel<<<static_cast<unsigned>(from.rows), kThreads, 0, Stream(context)>>>(
        View<const float>(from), View<const double>(positions),
        cuda::MakeRotaryFrequencies(attributes), from.batch, static_cast<int>(from.width),
        static_cast<int>(attributes.head_width), direction, View<float>(to));
    return LaunchStatus("golden Rope");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::golden_cuda
