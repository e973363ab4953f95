// kDecoderLinear of the provider: a linear layer under PyTorch's float16 autocast.
//
//   x (batch, R, K), weight (1, N, K), bias (1, 1, N), float32 -> (batch, R, N)
//   y = x W^T + bias, all of them rounded to float16 first
// Rounding: cuBLAS's, one to float16 behind a float32 accumulation; y is that, widened. A
// convolution of one tap is the same but for its bias, which PyTorch adds to what cuDNN has
// rounded, and rounds again. Order: the library's (gemm.h).
#include <cuda_fp16.h>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/workspace.h"
#include "kernels/decoders/checks.h"
#include "kernels/provider/cuda/gemm.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::SummedAxis;
using cuda::View;
using cuda::Workspace;

constexpr int kThreads = 256;

unsigned BlocksFor(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// A thread a value.
__global__ void __launch_bounds__(kThreads)
    NarrowKernel(View<const float> from, int64_t width, int64_t count, __half* to) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) to[index] = __float2half_rn(from.FlatRow(index / width)[index % width]);
}

// `bias` is added where it is not null.
__global__ void __launch_bounds__(kThreads)
    WidenKernel(const __half* from, const __half* bias, int64_t width, int64_t count,
                View<float> to) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t column = index % width;
  float value = __half2float(from[index]);
  if (bias != nullptr) {
    value = __half2float(__float2half_rn(value + __half2float(bias[column])));
  }
  to.FlatRow(index / width)[column] = value;
}

absl::Status Narrow(cudaStream_t stream, const Tensor& from, const Tensor& to) {
  const int64_t count = from.NumElements();
  if (count == 0) return absl::OkStatus();
  NarrowKernel<<<BlocksFor(count), kThreads, 0, stream>>>(View<const float>(from), from.width,
                                                          count, static_cast<__half*>(to.data));
  return LaunchStatus("a cast to float16");
}

enum class Bias { kWithProduct, kRoundedAfter };

class AutocastLinear final : public ProviderOperation {
 public:
  AutocastLinear(GemmPath path, Bias bias)
      : ProviderOperation(OpKind::kDecoderLinear), path_(path), bias_(bias) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(decoders::CheckLinear(kFamily, call));
    return CheckGemm();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    Workspace measure;
    const Scratch scratch(call, measure);
    return measure.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Workspace workspace(context.workspace);
    const Scratch scratch(call, workspace);
    const cudaStream_t stream = Stream(context);
    PLUMBLINE_RETURN_IF_ERROR(Narrow(stream, call.inputs[0], scratch.x));
    PLUMBLINE_RETURN_IF_ERROR(Narrow(stream, call.parameters[0], scratch.weight));
    PLUMBLINE_RETURN_IF_ERROR(Narrow(stream, call.parameters[1], scratch.bias));
    const bool fused = bias_ == Bias::kWithProduct;
    PLUMBLINE_RETURN_IF_ERROR(Multiply(
        stream, path_, {scratch.x, SummedAxis::kWidth}, {scratch.weight, SummedAxis::kWidth},
        fused ? scratch.bias : Tensor(), scratch.output, scratch.library));
    const int64_t count = call.output.NumElements();
    if (count == 0) return absl::OkStatus();
    WidenKernel<<<BlocksFor(count), kThreads, 0, stream>>>(
        static_cast<const __half*>(scratch.output.data),
        fused ? nullptr : static_cast<const __half*>(scratch.bias.data), call.output.width, count,
        View<float>(call.output));
    return LaunchStatus("a cast from float16");
  }

 private:
  // Dense float16 copies, and the library's scratch.
  struct Scratch {
    Scratch(const ForwardCall& call, Workspace& workspace)
        : x(Take(call.inputs[0], workspace)),
          weight(Take(call.parameters[0], workspace)),
          bias(Take(call.parameters[1], workspace)),
          output(Take(call.output, workspace)) {
      const size_t bytes = GemmWorkspaceBytes();
      library = absl::MakeSpan(workspace.Take<uint8_t>(static_cast<int64_t>(bytes)), bytes);
    }

    static Tensor Take(const Tensor& like, Workspace& workspace) {
      return Tensor::Dense(workspace.Take<__half>(like.NumElements()), DType::kF16, like.batch,
                           like.rows, like.width);
    }

    Tensor x, weight, bias, output;
    absl::Span<uint8_t> library;
  };

  const GemmPath path_;
  const Bias bias_;
};

}  // namespace

std::shared_ptr<const Operation> MakeAutocastLinear(GemmPath path) {
  return std::make_shared<AutocastLinear>(path, Bias::kWithProduct);
}
std::shared_ptr<const Operation> MakeAutocastConvolution(GemmPath path) {
  return std::make_shared<AutocastLinear>(path, Bias::kRoundedAfter);
}

}  // namespace plumbline::provider_cuda
