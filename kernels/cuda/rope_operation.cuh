// kRope in an implementation's own arithmetic: what golden and provider share of it.
//
//   x (batch, R, heads * D) of T, position_ids (1, R, 3) float64 -> (batch, R, heads * D)
//   angle = float32(position) * inv_freq in float32; the channel beside one of the first 6 F of a
//   head is 3 F further or nearer; forward and backward differ in the sign of its part
//
// Arithmetic has
//   Cosine(angle), Sine(angle)             as floats
//   Turn<kBackward>(x, other, cosine, sine)  x cosine + other sine as a T; `other` has its sign
//   Pass<kBackward>(x)                     a channel that is not turned
#ifndef PLUMBLINE_KERNELS_CUDA_ROPE_OPERATION_CUH_
#define PLUMBLINE_KERNELS_CUDA_ROPE_OPERATION_CUH_

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/cuda/rounding.cuh"
#include "kernels/ops.h"

namespace plumbline::cuda {

inline constexpr int kRopeAxes = 3;
inline constexpr int kRopeThreads = 256;
inline constexpr int kMostRopeHalf = kRopeAxes * kMostRotaryFrequencies;

// A block a row of every item; its threads share the row's cosines and sines.
template <typename T, typename Arithmetic, bool kBackward>
__global__ void __launch_bounds__(kRopeThreads)
    RopeKernel(View<const T> from, View<const double> positions, RotaryFrequencies frequencies,
               int64_t batch, int width, int head_width, View<T> to) {
  __shared__ float cosines[kMostRopeHalf];
  __shared__ float sines[kMostRopeHalf];
  const int64_t row = blockIdx.x;
  const int half = kRopeAxes * frequencies.count;
  for (int i = threadIdx.x; i < half; i += kRopeThreads) {
    const float angle = static_cast<float>(positions.Row(row)[i / frequencies.count]) *
                        frequencies.inverse[i % frequencies.count];
    cosines[i] = Arithmetic::Cosine(angle);
    sines[i] = Arithmetic::Sine(angle);
  }
  __syncthreads();
  for (int64_t item = 0; item < batch; ++item) {
    const T* const x = from.Row(row, item);
    T* const y = to.Row(row, item);
    for (int column = threadIdx.x; column < width; column += kRopeThreads) {
      const int channel = column % head_width;
      if (channel >= 2 * half) {
        y[column] = Arithmetic::template Pass<kBackward>(x[column]);
        continue;
      }
      const bool first = channel < half;
      const int angle = first ? channel : channel - half;
      const float other = Widen(first ? x[column + half] : x[column - half]);
      y[column] = Arithmetic::template Turn<kBackward>(
          Widen(x[column]), first != kBackward ? -other : other, cosines[angle], sines[angle]);
    }
  }
}

// Base is the family's, made with an OpKind. `name` stands in errors and must outlive the
// operation.
template <typename Base, typename T, typename Arithmetic>
class RopeOperation final : public Base {
 public:
  explicit RopeOperation(const char* name) : Base(OpKind::kRope), name_(name) {}

  absl::Status Check(const ForwardCall& call) const override {
    const absl::Status checked = Base::Check(call);
    return checked.ok() ? CheckRotaryFrequencies(name_, call.attributes) : checked;
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
  absl::Status Rotate(const ExecutionContext& context, const Tensor& from, const Tensor& positions,
                      const Attributes& attributes, const Tensor& to) const {
    if (from.NumElements() == 0) return absl::OkStatus();
    RopeKernel<T, Arithmetic, kBackward>
        <<<static_cast<unsigned>(from.rows), kRopeThreads, 0, Base::Stream(context)>>>(
            View<const T>(from), View<const double>(positions), MakeRotaryFrequencies(attributes),
            from.batch, static_cast<int>(from.width), static_cast<int>(attributes.head_width),
            View<T>(to));
    return LaunchStatus(name_);
  }

  const char* const name_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ROPE_OPERATION_CUH_
