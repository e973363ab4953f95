// kTimeProjection of the golden.
//
//   timestep (1, T, 1) -> (1, T, 2 F): cos(t f_i), then sin(t f_i), f_i = exp(-ln(10000) i / F)
// The exponent, f_i and the angle are rounded to float32: that evaluation is the model's, as
// diffusers has it. exp, cos and sin are float64 inside. No sums, no gradient.
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

constexpr float kMinusLogLongestPeriod = -9.210340371976184f;  // -ln(10000)

__global__ void TimeProjectionKernel(View<const float> timestep, int64_t frequencies,
                                     View<float> output) {
  const float t = *timestep.Row(blockIdx.x);
  float* const to = output.Row(blockIdx.x);
  for (int64_t i = threadIdx.x; i < frequencies; i += blockDim.x) {
    const float exponent =
        kMinusLogLongestPeriod * static_cast<float>(i) / static_cast<float>(frequencies);
    const float angle = t * static_cast<float>(exp(static_cast<double>(exponent)));
    to[i] = static_cast<float>(cos(static_cast<double>(angle)));
    to[frequencies + i] = static_cast<float>(sin(static_cast<double>(angle)));
  }
}

class TimeProjection final : public GoldenOperation {
 public:
  TimeProjection() : GoldenOperation(OpKind::kTimeProjection) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    if (output.rows == 0 || output.width == 0) return absl::OkStatus();
    TimeProjectionKernel<<<static_cast<unsigned>(output.rows), 128, 0, Stream(context)>>>(
        View<const float>(call.inputs[0]), output.width / 2, View<float>(output));
    return LaunchStatus("golden TimeProjection");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeProjection() { return std::make_shared<TimeProjection>(); }

}  // namespace plumbline::golden_cuda
