// kSnakeBeta: see kernels/decoders/cpu/snake_beta.h for the formulas.
//
// Rounding: y, once; in float32 every operation. Order: i and k ascending, a product and a sum
// each. Autocast changes nothing: PyTorch decodes sound outside of it.
#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/workspace.h"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::View;
using cuda::Workspace;

enum Parameter { kAlpha, kBeta, kUp, kDown };

struct Filters {
  const float* alpha;
  const float* beta;
  const float* up;
  const float* down;
  int64_t taps;

  explicit Filters(const ForwardCall& call)
      : alpha(Data(call, kAlpha)),
        beta(Data(call, kBeta)),
        up(Data(call, kUp)),
        down(Data(call, kDown)),
        taps(call.parameters[kUp].width) {}

  static const float* Data(const ForwardCall& call, Parameter parameter) {
    return static_cast<const float*>(call.parameters[parameter].data);
  }
};

__device__ inline double Sine(double x) { return sin(x); }
// As the CPU's: the double result rounded once.
__device__ inline float Sine(float x) { return static_cast<float>(sin(static_cast<double>(x))); }
__device__ inline double ExactExp(double x) { return exp(x); }
__device__ inline float ExactExp(float x) {
  return static_cast<float>(exp(static_cast<double>(x)));
}

// v(j) of every channel of one batch item, (2 rows, channels); a thread a value.
template <typename Real>
__global__ void __launch_bounds__(kThreads)
    ActivateKernel(const float* x, int64_t row_stride, int64_t rows, int64_t channels,
                   Filters filters, int64_t count, Real* activated) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t j = index / channels;
  const int64_t c = index % channels;
  const int64_t shift = filters.taps / 2 - 1;
  const int64_t first = (j + shift - filters.taps + 2) >> 1;
  const int64_t last = (j + shift) >> 1;
  Real sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    const int64_t row = i < 0 ? 0 : i >= rows ? rows - 1 : i;
    sum += static_cast<Real>(x[row * row_stride + c]) *
           static_cast<Real>(filters.up[j + shift - 2 * i]);
  }
  const Real u = Real(2) * sum;
  const Real alpha = ExactExp(static_cast<Real>(filters.alpha[c]));
  const Real magnitude =
      Real(1) / (ExactExp(static_cast<Real>(filters.beta[c])) + static_cast<Real>(1e-9));
  const Real sine = Sine(alpha * u);
  activated[index] = u + magnitude * (sine * sine);
}

template <typename Real>
__global__ void __launch_bounds__(kThreads)
    DownsampleKernel(const Real* activated, int64_t rows, int64_t channels, Filters filters,
                     int64_t count, float* output, int64_t row_stride) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t t = index / channels;
  const int64_t c = index % channels;
  const int64_t half = filters.taps / 2 - 1;
  Real sum = 0;
  for (int64_t k = 0; k < filters.taps; ++k) {
    int64_t j = 2 * t + k - half;
    j = j < 0 ? 0 : j >= 2 * rows ? 2 * rows - 1 : j;
    sum += activated[j * channels + c] * static_cast<Real>(filters.down[k]);
  }
  output[t * row_stride + c] = static_cast<float>(sum);
}

class SnakeBeta final : public DecoderOperation {
 public:
  explicit SnakeBeta(const Flavour& flavour) : DecoderOperation(flavour, OpKind::kSnakeBeta) {}

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    const Tensor& x = call.inputs[0];
    return static_cast<size_t>(2 * x.rows * x.width) * sizeof(double);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return ForArithmetic(flavour_.arithmetic, [&](auto arithmetic) {
      return Run<typename decltype(arithmetic)::Real>(context, call);
    });
  }

 private:
  template <typename Real>
  static absl::Status Run(const ExecutionContext& context, const ForwardCall& call) {
    const Tensor& x = call.inputs[0];
    const Filters filters(call);
    Workspace workspace(context.workspace);
    Real* const activated = workspace.Take<Real>(2 * x.rows * x.width);
    const int64_t count = x.rows * x.width;
    if (count == 0) return absl::OkStatus();
    for (int64_t item = 0; item < x.batch; ++item) {
      ActivateKernel<Real><<<BlocksFor(2 * count), kThreads, 0, Stream(context)>>>(
          x.Row<float>(0, item), x.row_stride, x.rows, x.width, filters, 2 * count, activated);
      PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("an activation's upsampling"));
      DownsampleKernel<Real><<<BlocksFor(count), kThreads, 0, Stream(context)>>>(
          activated, x.rows, x.width, filters, count, call.output.Row<float>(0, item),
          call.output.row_stride);
      PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("an activation's downsampling"));
    }
    return absl::OkStatus();
  }
};

}  // namespace

OperationPointer MakeSnakeBeta(const Flavour& flavour) {
  return std::make_shared<SnakeBeta>(flavour);
}

}  // namespace plumbline::decoders_cuda
