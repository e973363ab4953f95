#include "kernels/candidate/cpu/residual.h"

#include "kernels/candidate/cpu/convert.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/table_gradient.h"
#include "kernels/cpu/call_check.h"

namespace plumbline::candidate {
namespace {

class GatedResidual final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kGatedResidual, call, 4, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, {DType::kBF16})
        .Type("branch", call.inputs[1], {DType::kBF16})
        .Shape("branch", call.inputs[1], x.batch, x.rows, x.width)
        .Type("gate", call.inputs[2], {DType::kBF16})
        .Shape("gate", call.inputs[2], 1, CallCheck::kAny, x.width)
        .Type("index", call.inputs[3], {DType::kI64})
        .Shape("index", call.inputs[3], 1, x.rows, 1)
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return TableGradientBytes(call.inputs[2]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& branch = call.inputs[1];
    const Tensor& gate = call.inputs[2];
    const Tensor& index = call.inputs[3];
    ParallelRows(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
      GatedResidualRow(x.Row<bfloat16>(row, item), branch.Row<bfloat16>(row, item),
                       gate.Row<bfloat16>(*index.Row<int64_t>(row)), x.width,
                       call.output.Row<bfloat16>(row, item));
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& branch = call.inputs[1];
    const Tensor& gate = call.inputs[2];
    const Tensor& index = call.inputs[3];
    const Tensor& grad = call.grad_output;
    if (!call.grad_inputs[0].IsNull()) ConvertRows(*context.threads, grad, call.grad_inputs[0]);
    if (const Tensor& grad_branch = call.grad_inputs[1]; !grad_branch.IsNull()) {
      ParallelRows(*context.threads, grad.batch, grad.rows, [&](int64_t item, int64_t row) {
        const bfloat16* g = grad.Row<bfloat16>(row, item);
        const bfloat16* gate_row = gate.Row<bfloat16>(*index.Row<int64_t>(row));
        bfloat16* to = grad_branch.Row<bfloat16>(row, item);
        for (int64_t i = 0; i < grad.width; ++i) {
          to[i] = RoundToBf16(WidenBf16(g[i]) * WidenBf16(gate_row[i]));
        }
      });
    }
    if (const Tensor& grad_gate = call.grad_inputs[2]; !grad_gate.IsNull()) {
      SumIntoTable(*context.threads, grad.batch, index, grad_gate,
                   reinterpret_cast<float*>(context.workspace.data()),
                   [&](int64_t item, int64_t row, int64_t first, int64_t count, float* values) {
                     const bfloat16* g = grad.Row<bfloat16>(row, item) + first;
                     const bfloat16* b = branch.Row<bfloat16>(row, item) + first;
                     for (int64_t i = 0; i < count; ++i) {
                       values[i] = RoundThroughBf16(WidenBf16(g[i]) * WidenBf16(b[i]));
                     }
                   });
    }
    return absl::OkStatus();
  }
};

class Residual final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kResidual, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, {DType::kBF16})
        .Type("branch", call.inputs[1], {DType::kBF16})
        .Shape("branch", call.inputs[1], x.batch, x.rows, x.width)
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& branch = call.inputs[1];
    ParallelRows(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
      const bfloat16* a = x.Row<bfloat16>(row, item);
      const bfloat16* b = branch.Row<bfloat16>(row, item);
      bfloat16* to = call.output.Row<bfloat16>(row, item);
      for (int64_t i = 0; i < x.width; ++i) to[i] = RoundToBf16(WidenBf16(a[i]) + WidenBf16(b[i]));
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (const Tensor& to : call.grad_inputs) {
      if (!to.IsNull()) ConvertRows(*context.threads, call.grad_output, to);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void GatedResidualRow(const bfloat16* x, const bfloat16* branch, const bfloat16* gate,
                      int64_t width, bfloat16* output) {
  for (int64_t i = 0; i < width; ++i) {
    output[i] =
        RoundToBf16(WidenBf16(x[i]) + RoundThroughBf16(WidenBf16(gate[i]) * WidenBf16(branch[i])));
  }
}

std::shared_ptr<const Operation> MakeGatedResidual() { return std::make_shared<GatedResidual>(); }
std::shared_ptr<const Operation> MakeResidual() { return std::make_shared<Residual>(); }

}  // namespace plumbline::candidate
