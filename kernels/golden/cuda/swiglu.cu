// kSwiGlu of the golden.
//
//   gate_up (batch, R, 2 F): value a, then gate b -> (batch, R, F)
//   forward   y = a SiLU(b)
//   backward  da = dy SiLU(b); db = dy a SiLU'(b)
// Rounding: float64 inside, each result once. No sums.
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/golden/cuda/operations.h"
#include "kernels/golden/cuda/silu.cuh"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

struct ForwardBody {
  View<const float> gate_up;
  View<float> output;
  int64_t width;  // F

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const float* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) a[i] = static_cast<float>(a[i] * Silu(b[i]));
    cuda::StoreRun(a, output.Row(row, item) + column);
  }
};

struct BackwardBody {
  View<const float> gate_up;
  View<const float> grad;
  View<float> grad_gate_up;
  int64_t width;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const float* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount], g[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
    cuda::LoadRun(grad.Row(row, item) + column, g);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const double gradient = g[i];
      const double product = gradient * a[i];
      a[i] = static_cast<float>(gradient * Silu(b[i]));
      b[i] = static_cast<float>(product * SiluDerivative(b[i]));
    }
    float* const to = grad_gate_up.Row(row, item) + column;
    cuda::StoreRun(a, to);
    cuda::StoreRun(b, to + width);
  }
};

class SwiGlu final : public GoldenOperation {
 public:
  SwiGlu() : GoldenOperation(OpKind::kSwiGlu) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& output = call.output;
    const ForwardBody body = {View<const float>(gate_up), View<float>(output), output.width};
    return cuda::ForEachRun(Stream(context), output.batch, output.rows, output.width,
                            cuda::AreAligned(cuda::kRun, gate_up, output), body, "golden SwiGlu");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    const Tensor& grad = call.grad_output;
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const BackwardBody body = {View<const float>(gate_up), View<const float>(grad),
                               View<float>(grad_gate_up), grad.width};
    return cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                            cuda::AreAligned(cuda::kRun, gate_up, grad, grad_gate_up), body,
                            "golden SwiGlu backward");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::golden_cuda
