// kDecoderSwiGlu, kDecoderResidual, kAppendTokens and kMean.
//
//   gate_up (batch, R, 2 F): value * (gate / (1 + exp(-gate)))
//   x, branch (batch, R, W)[, scale (1, 1, W)]: x + branch [scale]
//   x (batch, R, W), tokens (1, 1, n W): x, the tokens, a row of zeros
//   n times (batch, L, C): their sum in order, divided by n
// Rounding: each value once; in float32 every operation; with autocast SwiGLU's SiLU and its
// product to float16.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/call_check.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/decoders/cuda/arithmetic.cuh"

namespace plumbline::decoders_cuda {
namespace {

using cuda::View;

constexpr size_t kMostInputs = 16;

// A thread a value of the output: calls value(flat_row, column).
template <typename Value>
__global__ void __launch_bounds__(kThreads)
    FillKernel(View<float> output, int64_t width, int64_t count, Value value) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t flat_row = index / width;
  const int64_t column = index % width;
  output.FlatRow(flat_row)[column] = value(flat_row, column);
}

template <typename Value>
absl::Status Fill(cudaStream_t stream, const Tensor& output, Value value) {
  const int64_t count = output.NumElements();
  if (count == 0) return absl::OkStatus();
  FillKernel<<<BlocksFor(count), kThreads, 0, stream>>>(View<float>(output), output.width, count,
                                                        value);
  return LaunchStatus("a decoder's elementwise kernel");
}

template <typename A>
struct SwiGluValue {
  View<const float> gate_up;
  int64_t width;

  __device__ float operator()(int64_t row, int64_t column) const {
    using Real = typename A::Real;
    const float* const from = gate_up.FlatRow(row);
    const Real gate = from[width + column];
    const Real silu = gate / (Real(1) + ExpOf(-gate));
    if (A::kHalf) {
      return RoundThroughHalf(from[column] * RoundThroughHalf(static_cast<float>(silu)));
    }
    return static_cast<float>(static_cast<Real>(from[column]) * silu);
  }
};

template <typename A>
struct ResidualValue {
  View<const float> x;
  View<const float> branch;
  const float* scale;

  __device__ float operator()(int64_t row, int64_t column) const {
    using Real = typename A::Real;
    Real added = branch.FlatRow(row)[column];
    if (scale != nullptr) added *= static_cast<Real>(scale[column]);
    return static_cast<float>(static_cast<Real>(x.FlatRow(row)[column]) + added);
  }
};

struct AppendValue {
  View<const float> x;
  const float* tokens;
  int64_t count;  // Of tokens.
  int64_t width;

  __device__ float operator()(int64_t flat_row, int64_t column) const {
    const int64_t rows = x.rows + count + 1;
    const int64_t row = flat_row % rows;
    if (row < x.rows) return x.Row(row, flat_row / rows)[column];
    return row < x.rows + count ? tokens[(row - x.rows) * width + column] : 0.0f;
  }
};

struct MeanInputs {
  const float* data[kMostInputs];
  int64_t row_stride[kMostInputs];
  int64_t batch_stride[kMostInputs];
  int count;
  int64_t rows;
};

template <typename A>
struct MeanValue {
  MeanInputs inputs;

  __device__ float operator()(int64_t flat_row, int64_t column) const {
    using Real = typename A::Real;
    Real sum = 0;
    for (int i = 0; i < inputs.count; ++i) {
      sum +=
          static_cast<Real>(inputs.data[i][flat_row / inputs.rows * inputs.batch_stride[i] +
                                           flat_row % inputs.rows * inputs.row_stride[i] + column]);
    }
    return static_cast<float>(sum / static_cast<Real>(inputs.count));
  }
};

class Elementwise final : public DecoderOperation {
 public:
  Elementwise(const Flavour& flavour, OpKind op) : DecoderOperation(flavour, op) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(DecoderOperation::Check(call));
    const size_t inputs = call.inputs.size();
    return CallCheck(flavour_.implementation, op_, call, inputs, 0, /*optional_parameters=*/1)
        .That(op_ != OpKind::kMean || inputs <= kMostInputs,
              absl::StrCat("the inputs, ", inputs, ", must be at most ", kMostInputs))
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const auto parameter = [&] {
      return call.parameters.empty() ? nullptr : static_cast<const float*>(call.parameters[0].data);
    };
    return ForArithmetic(flavour_.arithmetic, [&](auto arithmetic) {
      using A = decltype(arithmetic);
      const View<const float> x(call.inputs[0]);
      switch (op_) {
        case OpKind::kDecoderSwiGlu:
          return Fill(Stream(context), call.output, SwiGluValue<A>{x, call.output.width});
        case OpKind::kDecoderResidual:
          return Fill(Stream(context), call.output,
                      ResidualValue<A>{x, View<const float>(call.inputs[1]), parameter()});
        case OpKind::kAppendTokens:
          return Fill(Stream(context), call.output,
                      AppendValue{x, parameter(), call.parameters[0].width / call.output.width,
                                  call.output.width});
        default:
          return Fill(Stream(context), call.output, MeanValue<A>{InputsOf(call)});
      }
    });
  }

 private:
  static MeanInputs InputsOf(const ForwardCall& call) {
    MeanInputs inputs = {};
    inputs.count = static_cast<int>(call.inputs.size());
    inputs.rows = call.inputs[0].rows;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      inputs.data[i] = static_cast<const float*>(call.inputs[i].data);
      inputs.row_stride[i] = call.inputs[i].row_stride;
      inputs.batch_stride[i] = call.inputs[i].batch_stride;
    }
    return inputs;
  }
};

}  // namespace

OperationPointer MakeElementwise(const Flavour& flavour, OpKind op) {
  return std::make_shared<Elementwise>(flavour, op);
}

}  // namespace plumbline::decoders_cuda
