// kGatedResidual of the golden.
//
//   x(R, H), branch(R, H), gate(table, H), index(R, 1) int64 -> (R, H)
//   forward   y = x + gate[index] branch
//   backward  dx = dy; dbranch = dy gate[index]; per table row, dgate = sum of dy branch
// Rounding: each result once. Order: dgate as SumRowsInto.
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

enum Input { kX, kBranch, kGate, kIndex };

class GatedResidual final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kGatedResidual, call, 4, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[kX];
    return check.Type("x", x, {DType::kF32})
        .Type("branch", call.inputs[kBranch], {DType::kF32})
        .Shape("branch", call.inputs[kBranch], x.batch, x.rows, x.width)
        .Type("gate", call.inputs[kGate], {DType::kF32})
        .Shape("gate", call.inputs[kGate], 1, CallCheck::kAny, x.width)
        .Type("index", call.inputs[kIndex], {DType::kI64})
        .Shape("index", call.inputs[kIndex], 1, x.rows, 1)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return SumRowsBytes(call.inputs[kGate]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    ForEachRow(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
      const float* const residual = x.Row<float>(row, item);
      const float* const branch = call.inputs[kBranch].Row<float>(row, item);
      const float* const gate =
          call.inputs[kGate].Row<float>(*call.inputs[kIndex].Row<int64_t>(row));
      float* const to = call.output.Row<float>(row, item);
      for (int64_t i = 0; i < x.width; ++i) {
        to[i] = static_cast<float>(static_cast<double>(gate[i]) * branch[i] + residual[i]);
      }
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate = call.inputs[kGate];
    const Tensor& branch = call.inputs[kBranch];
    const Tensor& grad = call.grad_output;
    const Tensor& grad_x = call.grad_inputs[kX];
    const Tensor& grad_branch = call.grad_inputs[kBranch];
    const auto slot = [&](int64_t row) { return *call.inputs[kIndex].Row<int64_t>(row); };
    ForEachRow(*context.threads, grad.batch, grad.rows, [&](int64_t item, int64_t row) {
      const float* const g = grad.Row<float>(row, item);
      if (!grad_x.IsNull()) std::copy_n(g, grad.width, grad_x.Row<float>(row, item));
      if (grad_branch.IsNull()) return;
      const float* const gate_row = gate.Row<float>(slot(row));
      float* const to = grad_branch.Row<float>(row, item);
      // One product of two floats: its float32 rounding is that of the exact product.
      for (int64_t i = 0; i < grad.width; ++i) to[i] = g[i] * gate_row[i];
    });
    Scratch scratch(context.workspace);
    SumRowsInto(*context.threads, grad.batch, grad.rows, call.grad_inputs[kGate],
                scratch.Take<double>(gate.rows * gate.width), slot,
                [&](int64_t item, int64_t row, int64_t column) {
                  return static_cast<double>(grad.Row<float>(row, item)[column]) *
                         branch.Row<float>(row, item)[column];
                });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() { return std::make_shared<GatedResidual>(); }

}  // namespace plumbline::golden
