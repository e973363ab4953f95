// kGatedResidual of the golden.
//
//   x, branch (batch, R, H), gate (1, table rows, H), index (1, R, 1) int64 -> (batch, R, H)
//   forward   y = x + gate[index] branch
//   backward  dx = dy; dbranch = dy gate[index]; per table row, dgate = sum of dy branch
// Rounding: float64 inside, each result once. Order: table_gradient.cuh.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/golden/cuda/operations.h"
#include "kernels/golden/cuda/table_gradient.cuh"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

enum Input { kX, kBranch, kGate, kIndex };

struct ForwardBody {
  View<const float> x;
  View<const float> branch;
  View<const float> gate;
  View<const int64_t> index;
  View<float> output;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount], branches[kCount], gates[kCount];
    cuda::LoadRun(x.Row(row, item) + column, values);
    cuda::LoadRun(branch.Row(row, item) + column, branches);
    cuda::LoadRun(gate.Row(*index.Row(row)) + column, gates);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(values[i] + static_cast<double>(gates[i]) * branches[i]);
    }
    cuda::StoreRun(values, output.Row(row, item) + column);
  }
};

struct BranchGradientBody {
  View<const float> grad;
  View<const float> gate;
  View<const int64_t> index;
  View<float> grad_branch;

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
  View<const float> grad;
  View<const float> branch;

  __device__ double operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    return static_cast<double>(grad.Row(row, item)[column]) * branch.Row(row, item)[column];
  }
};

class GatedResidual final : public GoldenOperation {
 public:
  GatedResidual() : GoldenOperation(OpKind::kGatedResidual) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    const Tensor& branch = call.inputs[kBranch];
    const Tensor& gate = call.inputs[kGate];
    const ForwardBody body = {View<const float>(x), View<const float>(branch),
                              View<const float>(gate), View<const int64_t>(call.inputs[kIndex]),
                              View<float>(call.output)};
    return cuda::ForEachRun(Stream(context), x.batch, x.rows, x.width,
                            cuda::AreAligned(cuda::kRun, x, branch, gate, call.output), body,
                            "golden GatedResidual");
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
      const BranchGradientBody body = {View<const float>(grad), View<const float>(gate),
                                       View<const int64_t>(index), View<float>(grad_branch)};
      done.Update(cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                                   cuda::AreAligned(cuda::kRun, grad, gate, grad_branch), body,
                                   "golden GatedResidual backward"));
    }
    if (const Tensor& grad_gate = call.grad_inputs[kGate]; !grad_gate.IsNull()) {
      done.Update(SumIntoTable(
          Stream(context), grad.batch, index, grad_gate,
          GateContribution{View<const float>(grad), View<const float>(call.inputs[kBranch])}));
    }
    return done;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() { return std::make_shared<GatedResidual>(); }

}  // namespace plumbline::golden_cuda
