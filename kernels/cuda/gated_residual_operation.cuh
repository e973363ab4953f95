// kGatedResidual in an implementation's own arithmetic: what golden and provider share of it.
//
//   x, branch (batch, R, H), gate (1, table rows, H) of T, index (1, R, 1) int64 -> (batch, R, H)
//   backward: dx = dy; dbranch = round(dy gate[index])
//
// Arithmetic has, for float values that a store of T rounds:
//   Value(x, branch, gate)                                the output
//   AddGateGradient(stream, grad, branch, index, to)      the table's gradient, enqueued
#ifndef PLUMBLINE_KERNELS_CUDA_GATED_RESIDUAL_OPERATION_CUH_
#define PLUMBLINE_KERNELS_CUDA_GATED_RESIDUAL_OPERATION_CUH_

#include "kernels/cuda/convert.h"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/ops.h"

namespace plumbline::cuda {

template <typename T, typename Arithmetic>
struct GatedResidualForwardBody {
  View<const T> x;
  View<const T> branch;
  View<const T> gate;
  View<const int64_t> index;
  View<T> output;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount], branches[kCount], gates[kCount];
    LoadRun(x.Row(row, item) + column, values);
    LoadRun(branch.Row(row, item) + column, branches);
    LoadRun(gate.Row(*index.Row(row)) + column, gates);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = Arithmetic::Value(values[i], branches[i], gates[i]);
    }
    StoreRun(values, output.Row(row, item) + column);
  }
};

template <typename T>
struct BranchGradientBody {
  View<const T> grad;
  View<const T> gate;
  View<const int64_t> index;
  View<T> grad_branch;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount], gates[kCount];
    LoadRun(grad.Row(row, item) + column, values);
    LoadRun(gate.Row(*index.Row(row)) + column, gates);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= gates[i];
    StoreRun(values, grad_branch.Row(row, item) + column);
  }
};

// Base is the family's, made with an OpKind. `name` stands in errors and must outlive the
// operation.
template <typename Base, typename T, typename Arithmetic>
class GatedResidualOperation final : public Base {
 public:
  explicit GatedResidualOperation(const char* name) : Base(OpKind::kGatedResidual), name_(name) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    const Tensor& branch = call.inputs[kBranch];
    const Tensor& gate = call.inputs[kGate];
    const GatedResidualForwardBody<T, Arithmetic> body = {
        View<const T>(x), View<const T>(branch), View<const T>(gate),
        View<const int64_t>(call.inputs[kIndex]), View<T>(call.output)};
    return ForEachRun(Base::Stream(context), x.batch, x.rows, x.width,
                      AreAligned(kRun, x, branch, gate, call.output), body, name_);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const cudaStream_t stream = Base::Stream(context);
    const Tensor& gate = call.inputs[kGate];
    const Tensor& index = call.inputs[kIndex];
    const Tensor& grad = call.grad_output;
    absl::Status done = absl::OkStatus();
    if (!call.grad_inputs[kX].IsNull()) {
      done.Update(ConvertOnCuda(stream, grad, call.grad_inputs[kX]));
    }
    if (const Tensor& grad_branch = call.grad_inputs[kBranch]; !grad_branch.IsNull()) {
      const BranchGradientBody<T> body = {View<const T>(grad), View<const T>(gate),
                                          View<const int64_t>(index), View<T>(grad_branch)};
      done.Update(ForEachRun(stream, grad.batch, grad.rows, grad.width,
                             AreAligned(kRun, grad, gate, grad_branch), body, name_));
    }
    if (const Tensor& grad_gate = call.grad_inputs[kGate]; !grad_gate.IsNull()) {
      done.Update(
          Arithmetic::AddGateGradient(stream, grad, call.inputs[kBranch], index, grad_gate));
    }
    return done;
  }

 private:
  enum Input { kX, kBranch, kGate, kIndex };

  const char* const name_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_GATED_RESIDUAL_OPERATION_CUH_
