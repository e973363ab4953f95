// kTimeProjection of the candidate and the provider, float32 throughout.
//
// Shapes: timestep (1, T, 1); output (1, T, 2 F): cos(t f_i), then sin(t f_i), with
// f_i = exp(-ln(10000) i / F), the product, the quotient, the exponential and the angle each
// rounded to float32; exp, cos and sin are CUDA's expf, cosf and sinf. No gradient.
#include "kernels/cuda/cuda_operation.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/shared_operations.h"

namespace plumbline::cuda {
namespace {

constexpr float kMinusLogLongestPeriod = -9.210340371976184f;  // -ln(10000)

__global__ void TimeProjectionKernel(View<const float> timestep, int64_t frequencies,
                                     View<float> output) {
  const float t = *timestep.Row(blockIdx.x);
  float* const to = output.Row(blockIdx.x);
  for (int64_t i = threadIdx.x; i < frequencies; i += blockDim.x) {
    const float exponent =
        kMinusLogLongestPeriod * static_cast<float>(i) / static_cast<float>(frequencies);
    const float angle = t * expf(exponent);
    to[i] = cosf(angle);
    to[frequencies + i] = sinf(angle);
  }
}

class TimeProjection final : public CudaOperation {
 public:
  explicit TimeProjection(absl::string_view implementation)
      : CudaOperation(implementation, Precision::kMixed, OpKind::kTimeProjection) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    if (output.rows == 0 || output.width == 0) return absl::OkStatus();
    TimeProjectionKernel<<<static_cast<unsigned>(output.rows), 128, 0, Stream(context)>>>(
        View<const float>(call.inputs[0]), output.width / 2, View<float>(output));
    return LaunchStatus("TimeProjection");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeProjection(absl::string_view implementation) {
  return std::make_shared<TimeProjection>(implementation);
}

}  // namespace plumbline::cuda
