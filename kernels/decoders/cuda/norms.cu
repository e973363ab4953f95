// kDecoderRmsNorm, kDecoderHeadNorm and kDecoderLayerNorm.
//
//   x (batch, R, W)[, weight (1, 1, W)[, bias (1, 1, W)]]
//   RMS    r = 1 / sqrt(mean of x^2 + epsilon); y = x r [weight]; of a row, or of each head
//   layer  m = mean of x; r = 1 / sqrt(mean of (x - m)^2 + epsilon); y = (x - m) r weight + bias
// Rounding: y, once, in float32 every operation; autocast rounds the head norm's y to float16.
// Order of the sums: BlockSum over 128 threads.
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::View;

constexpr int kNormThreads = 128;

// One run of `size` values a block, `runs` of them in a row.
template <typename A, bool kLayer>
__global__ void __launch_bounds__(kNormThreads)
    NormKernel(View<const float> x, const float* weight, const float* bias, int64_t runs,
               int64_t size, typename A::Real epsilon, View<float> output, bool to_half) {
  using Real = typename A::Real;
  __shared__ Real shared[kNormThreads];
  const int64_t row = blockIdx.x / runs;
  const int64_t first = blockIdx.x % runs * size;
  const float* const from = x.FlatRow(row) + first;
  float* const to = output.FlatRow(row) + first;
  const Real count = static_cast<Real>(size);
  Real mean = 0;
  if (kLayer) {
    mean = BlockSum<kNormThreads, Real>(size, shared,
                                        [&](int64_t i) { return static_cast<Real>(from[i]); }) /
           count;
  }
  const auto centred = [&](int64_t i) { return static_cast<Real>(from[i]) - mean; };
  const Real variance = BlockSum<kNormThreads, Real>(
                            size, shared, [&](int64_t i) { return centred(i) * centred(i); }) /
                        count;
  const Real reciprocal = ReciprocalRoot(variance + epsilon);
  for (int64_t i = threadIdx.x; i < size; i += kNormThreads) {
    Real value = centred(i) * reciprocal;
    if (weight != nullptr) value *= static_cast<Real>(weight[i]);
    if (bias != nullptr) value += static_cast<Real>(bias[i]);
    const float rounded = static_cast<float>(value);
    to[i] = to_half ? Half<A>(rounded) : rounded;
  }
}

class Norm final : public DecoderOperation {
 public:
  Norm(const Flavour& flavour, OpKind op) : DecoderOperation(flavour, op) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const bool of_heads = op_ == OpKind::kDecoderHeadNorm;
    const int64_t size = of_heads ? call.attributes.head_width : x.width;
    const int64_t runs = x.width / size;
    const int64_t blocks = x.batch * x.rows * runs;
    if (blocks == 0) return absl::OkStatus();
    const auto vector = [&](size_t i) {
      return i < call.parameters.size() ? static_cast<const float*>(call.parameters[i].data)
                                        : nullptr;
    };
    return ForArithmetic(flavour_.arithmetic, [&](auto arithmetic) {
      using A = decltype(arithmetic);
      const auto kernel =
          op_ == OpKind::kDecoderLayerNorm ? NormKernel<A, true> : NormKernel<A, false>;
      kernel<<<static_cast<unsigned>(blocks), kNormThreads, 0, Stream(context)>>>(
          View<const float>(x), vector(0), vector(1), runs, size, call.attributes.epsilon,
          View<float>(call.output), of_heads);
      return LaunchStatus("a decoder's norm");
    });
  }
};

}  // namespace

OperationPointer MakeNorm(const Flavour& flavour, OpKind op) {
  return std::make_shared<Norm>(flavour, op);
}

}  // namespace plumbline::decoders_cuda
