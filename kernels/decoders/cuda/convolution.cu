// kConv1d and kConvTranspose1d, as products of gathered rows: see
// kernels/decoders/cpu/convolution.h for the shapes and the phases.
//
// Rounding: the normalised weight to float32 (its factor gain / |weight| in float64, in float32
// every operation); y once, as kernels/cuda/float32_product.h has it. Order: |weight| BlockSum over
// 256 threads; the products that of float32_product.h over (tap, channel). Rows are gathered for a
// part of the results at a time; which part a result is in changes nothing in its sum. Autocast
// changes nothing: PyTorch decodes sound outside of it.
#include <algorithm>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/workspace.h"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::View;
using cuda::Workspace;

// Of the gathered rows that are held at once.
constexpr int64_t kMostGatheredBytes = int64_t{128} << 20;

// factors[row] = gain / |weight row|, or 1 without a gain; a block a row.
template <typename A>
__global__ void __launch_bounds__(kThreads)
    FactorKernel(const float* weight, const float* gain, int64_t width, typename A::Real* factors) {
  using Real = typename A::Real;
  __shared__ Real shared[kThreads];
  if (gain == nullptr) {
    if (threadIdx.x == 0) factors[blockIdx.x] = 1;
    return;
  }
  const float* const row = weight + blockIdx.x * width;
  const Real sum = BlockSum<kThreads, Real>(width, shared, [&](int64_t i) {
    return static_cast<Real>(row[i]) * static_cast<Real>(row[i]);
  });
  if (threadIdx.x == 0) factors[blockIdx.x] = static_cast<Real>(gain[blockIdx.x]) / sqrt(sum);
}

// Where a weight's value lies.
struct WeightPlace {
  int64_t channels, taps;
  // kConv1d: weight[n][c][k], k = tap. kConvTranspose1d: weight[c][n][k], k = first_tap + tap *
  // stride, zero behind the last.
  bool transposed;
  int64_t outputs, kernel, first_tap, stride;
};

// weights(n, tap, c), a thread a value.
template <typename A>
__global__ void __launch_bounds__(kThreads)
    WeightKernel(const float* weight, const typename A::Real* factors, WeightPlace place,
                 int64_t count, float* weights) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t c = index % place.channels;
  const int64_t tap = index / place.channels % place.taps;
  const int64_t n = index / place.channels / place.taps;
  const int64_t k = place.transposed ? place.first_tap + tap * place.stride : tap;
  if (k >= place.kernel) {
    weights[index] = 0;
    return;
  }
  const int64_t from = place.transposed ? (c * place.outputs + n) * place.kernel + k
                                        : (n * place.channels + c) * place.kernel + k;
  using Real = typename A::Real;
  weights[index] =
      static_cast<float>(static_cast<Real>(weight[from]) * factors[place.transposed ? c : n]);
}

// gathered(row, tap, c) = x(first + row + offset + tap * step, c), zero outside.
__global__ void __launch_bounds__(kThreads)
    GatherKernel(const float* x, int64_t row_stride, int64_t rows, int64_t channels, int64_t taps,
                 int64_t first, int64_t offset, int64_t step, int64_t count, float* gathered) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t c = index % channels;
  const int64_t tap = index / channels % taps;
  const int64_t row = first + index / channels / taps + offset + tap * step;
  gathered[index] = row < 0 || row >= rows ? 0.0f : x[row * row_stride + c];
}

// One convolution over every row of x, whatever it came from.
struct Gathered {
  int64_t taps;
  int64_t offset;  // Of the first tap's row.
  int64_t step;    // From one tap's row to the next's.
};

class Convolution final : public DecoderOperation {
 public:
  Convolution(const Flavour& flavour, OpKind op) : DecoderOperation(flavour, op) {}

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    Workspace measure;
    const Scratch scratch(call, Transposed(), measure);
    return measure.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    if (call.output.NumElements() == 0) return absl::OkStatus();
    Workspace workspace(context.workspace);
    const Scratch scratch(call, Transposed(), workspace);
    return ForArithmetic(flavour_.arithmetic, [&](auto arithmetic) {
      return Run<decltype(arithmetic)>(Stream(context), call, scratch);
    });
  }

 private:
  struct Scratch {
    Scratch(const ForwardCall& call, bool transposed, Workspace& workspace) {
      const Tensor& x = call.inputs[0];
      const Tensor& weight = call.parameters[0];
      outputs = transposed ? call.parameters[2].width : weight.rows;
      kernel = weight.width / (transposed ? outputs : x.width);
      const int64_t stride = transposed ? call.attributes.stride : 1;
      taps = (kernel + stride - 1) / stride;
      const int64_t width = taps * x.width;
      const int64_t row_bytes = width * static_cast<int64_t>(sizeof(float));
      part_rows = std::clamp<int64_t>(kMostGatheredBytes / std::max<int64_t>(row_bytes, 1), 1,
                                      std::max<int64_t>(x.rows, 1));
      factors = workspace.Take<double>(weight.rows);
      weights = workspace.Take<float>(outputs * width);
      gathered = workspace.Take<float>(part_rows * width);
    }

    int64_t outputs, kernel, taps, part_rows;
    double* factors;  // Of the arithmetic's type.
    float* weights;
    float* gathered;
  };

  bool Transposed() const { return op_ == OpKind::kConvTranspose1d; }

  template <typename A>
  absl::Status Run(cudaStream_t stream, const ForwardCall& call, const Scratch& scratch) const {
    using Real = typename A::Real;
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const bool normalised = Transposed() || call.attributes.weight_norm;
    const float* const gain =
        normalised ? static_cast<const float*>(call.parameters[1].data) : nullptr;
    Real* const factors = reinterpret_cast<Real*>(scratch.factors);
    FactorKernel<A><<<static_cast<unsigned>(weight.rows), kThreads, 0, stream>>>(
        static_cast<const float*>(weight.data), gain, weight.width, factors);
    PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("a weight's norm"));
    const size_t bias_index = normalised ? 2 : 1;
    const Tensor bias =
        call.parameters.size() > bias_index ? call.parameters[bias_index] : Tensor();
    if (!Transposed()) {
      const WeightPlace place = {x.width, scratch.taps, false, scratch.outputs, scratch.kernel, 0,
                                 1};
      PLUMBLINE_RETURN_IF_ERROR(ArrangeWeights<A>(stream, weight, factors, place, scratch));
      const int64_t dilation = call.attributes.dilation;
      return Convolve(stream, x, {scratch.taps, -(scratch.taps - 1) / 2 * dilation, dilation}, bias,
                      call.output, scratch);
    }
    const int64_t stride = call.attributes.stride;
    const int64_t padding = (scratch.kernel - stride) / 2;
    for (int64_t phase = 0; phase < stride; ++phase) {
      const WeightPlace place = {x.width,         scratch.taps,   true,
                                 scratch.outputs, scratch.kernel, (phase + padding) % stride,
                                 stride};
      PLUMBLINE_RETURN_IF_ERROR(ArrangeWeights<A>(stream, weight, factors, place, scratch));
      // Every stride-th row of the output.
      Tensor results = call.output;
      results.data = results.Row<float>(phase);
      results.rows = x.rows;
      results.row_stride *= stride;
      PLUMBLINE_RETURN_IF_ERROR(Convolve(stream, x, {scratch.taps, (phase + padding) / stride, -1},
                                         bias, results, scratch));
    }
    return absl::OkStatus();
  }

  template <typename A>
  static absl::Status ArrangeWeights(cudaStream_t stream, const Tensor& weight,
                                     const typename A::Real* factors, const WeightPlace& place,
                                     const Scratch& scratch) {
    const int64_t count = place.outputs * place.taps * place.channels;
    WeightKernel<A><<<BlocksFor(count), kThreads, 0, stream>>>(
        static_cast<const float*>(weight.data), factors, place, count, scratch.weights);
    return LaunchStatus("a convolution's weights");
  }

  static absl::Status Convolve(cudaStream_t stream, const Tensor& x, const Gathered& gathered,
                               const Tensor& bias, const Tensor& output, const Scratch& scratch) {
    const int64_t width = gathered.taps * x.width;
    const Tensor weights = Tensor::Dense(scratch.weights, DType::kF32, 1, scratch.outputs, width);
    for (int64_t item = 0; item < x.batch; ++item) {
      for (int64_t first = 0; first < x.rows; first += scratch.part_rows) {
        const int64_t rows = std::min(scratch.part_rows, x.rows - first);
        const int64_t count = rows * width;
        GatherKernel<<<BlocksFor(count), kThreads, 0, stream>>>(
            x.Row<float>(0, item), x.row_stride, x.rows, x.width, gathered.taps, first,
            gathered.offset, gathered.step, count, scratch.gathered);
        PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("a convolution's rows"));
        Tensor part = output;
        part.data = output.Row<float>(first, item);
        part.batch = 1;
        part.rows = rows;
        PLUMBLINE_RETURN_IF_ERROR(cuda::MultiplyFloat32(
            stream, {Tensor::Dense(scratch.gathered, DType::kF32, 1, rows, width)}, {weights}, bias,
            part));
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

OperationPointer MakeConvolution(const Flavour& flavour, OpKind op) {
  return std::make_shared<Convolution>(flavour, op);
}

}  // namespace plumbline::decoders_cuda
