// kGatedResidual of the provider.
//
//   x, branch (batch, R, H), gate (1, table rows, H) bfloat16, index (1, R, 1) int64 -> (batch, R,
//   H) forward   round(x + round(gate[index] branch)) backward  of g: dx = g; dbranch = round(g
//   gate[index]); dgate[index] += round(g branch)
// Reductions: table_gradient.cuh.
#include "kernels/cuda/convert.h"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/table_gradient.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

enum Input { kX, kBranch, kGate, kIndex };

struct ForwardBody {
  View<const bf16> x;
  View<const bf16> branch;
  View<const bf16> gate;
  View<const int64_t> index;
  View<bf16> output;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount], branches[kCount], gates[kCount];
    cuda::LoadRun(x.Row(row, item) + column, values);
    cuda::LoadRun(branch.Row(row, item) + column, branches);
    cuda::LoadRun(gate.Row(*index.Row(row)) + column, gates);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += RoundThroughBf16(gates[i] * branches[i]);
    cuda::StoreRun(values, output.Row(row, item) + column);
  }
};

struct BranchGradientBody {
  View<const bf16> grad;
  View<const bf16> gate;
  View<const int64_t> index;
  View<bf16> grad_branch;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount], gates[kCount];
    cuda::LoadRun(grad.Row(row, item) + column, values);
    cuda::LoadRun(gate.Row(*index.Row(row)) + column, gates);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= gates[i];
    cuda::StoreRun(values, grad_branch.Row(row, item) + column);
  }
};

struct GateContribution {
  View<const bf16> grad;
  View<const bf16> branch;

  __device__ float operator()(int64_t item, int64_t row, int64_t column) const {
    return cuda::Widen(grad.Row(row, item)[column]) * cuda::Widen(branch.Row(row, item)[column]);
  }
};

class GatedResidual final : public ProviderOperation {
 public:
  GatedResidual() : ProviderOperation(OpKind::kGatedResidual) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    const Tensor& branch = call.inputs[kBranch];
    const Tensor& gate = call.inputs[kGate];
    const ForwardBody body = {View<const bf16>(x), View<const bf16>(branch), View<const bf16>(gate),
                              View<const int64_t>(call.inputs[kIndex]), View<bf16>(call.output)};
    return cuda::ForEachRun(Stream(context), x.batch, x.rows, x.width,
                            cuda::AreAligned(cuda::kRun, x, branch, gate, call.output), body,
                            "provider GatedResidual");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate = call.inputs[kGate];
    const Tensor& index = call.inputs[kIndex];
    const Tensor& grad = call.grad_output;
    absl::Status done = absl::OkStatus();
    if (!call.grad_inputs[kX].IsNull()) {
      done.Update(ConvertOnCuda(Stream(context), grad, call.grad_inputs[kX]));
    }
    if (const Tensor& grad_branch = call.grad_inputs[kBranch]; !grad_branch.IsNull()) {
      const BranchGradientBody body = {View<const bf16>(grad), View<const bf16>(gate),
                                       View<const int64_t>(index), View<bf16>(grad_branch)};
      done.Update(cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                                   cuda::AreAligned(cuda::kRun, grad, gate, grad_branch), body,
                                   "provider GatedResidual backward"));
    }
    if (const Tensor& grad_gate = call.grad_inputs[kGate]; !grad_gate.IsNull()) {
      done.Update(AddToTable(
          Stream(context), grad.batch, index, grad_gate,
          GateContribution{View<const bf16>(grad), View<const bf16>(call.inputs[kBranch])}));
    }
    return done;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() { return std::make_shared<GatedResidual>(); }

}  // namespace plumbline::provider_cuda
