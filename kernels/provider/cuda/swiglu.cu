// kSwiGlu of the provider.
//
//   gate_up (batch, R, 2 F) bfloat16: value a, then gate b -> (batch, R, F)
//   forward   s = round(SiLU(b)), SiLU in float32; round(a s)
//   backward  of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32
// No reductions.
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/silu.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

struct ForwardBody {
  View<const bf16> gate_up;
  View<bf16> output;
  int64_t width;  // F

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) a[i] *= RoundThroughBf16(Silu(b[i]));
    cuda::StoreRun(a, output.Row(row, item) + column);
  }
};

struct BackwardBody {
  View<const bf16> gate_up;
  View<const bf16> grad;
  View<bf16> grad_gate_up;
  int64_t width;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount], g[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
    cuda::LoadRun(grad.Row(row, item) + column, g);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float ds = RoundThroughBf16(g[i] * a[i]);
      a[i] = g[i] * RoundThroughBf16(Silu(b[i]));
      b[i] = SiluGradient(ds, b[i]);
    }
    bf16* const to = grad_gate_up.Row(row, item) + column;
    cuda::StoreRun(a, to);
    cuda::StoreRun(b, to + width);
  }
};

class SwiGlu final : public ProviderOperation {
 public:
  SwiGlu() : ProviderOperation(OpKind::kSwiGlu) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& output = call.output;
    const ForwardBody body = {View<const bf16>(gate_up), View<bf16>(output), output.width};
    return cuda::ForEachRun(Stream(context), output.batch, output.rows, output.width,
                            cuda::AreAligned(cuda::kRun, gate_up, output), body, "provider SwiGlu");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    const Tensor& grad = call.grad_output;
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const BackwardBody body = {View<const bf16>(gate_up), View<const bf16>(grad),
                               View<bf16>(grad_gate_up), grad.width};
    return cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                            cuda::AreAligned(cuda::kRun, gate_up, grad, grad_gate_up), body,
                            "provider SwiGlu backward");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::provider_cuda
