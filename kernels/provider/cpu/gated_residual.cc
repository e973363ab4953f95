// kGatedResidual of the provider.
//
//   x(R, H), branch(R, H), gate(table, H) bfloat16, index(R, 1) int64 -> (R, H)
//   forward   round(x + round(gate[index] branch))
//   backward  of g: dx = g; dbranch = round(g gate[index]); dgate[index] += round(g branch)
// Reductions: dgate in bfloat16, row order, batch item after item (table_gradient.h).
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/table_gradient.h"
#include "kernels/provider/cpu/values.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 16;

class GatedResidual : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kGatedResidual, call, 4, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, {DType::kBF16})
        .Type("branch", call.inputs[1], {DType::kBF16})
        .Shape("branch", call.inputs[1], x.batch, x.rows, x.width)
        .Type("gate", call.inputs[2], {DType::kBF16})
        .Shape("gate", call.inputs[2], 1, CallCheck::kAny, x.width)
        .Type("index", call.inputs[3], {DType::kI64})
        .Shape("index", call.inputs[3], 1, x.rows, 1)
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const auto run = [&](int64_t first_row, int64_t end_row) {
      for (int64_t row = first_row; row < end_row; ++row) {
        const bfloat16* const residual = FlatRow<bfloat16>(x, row);
        const bfloat16* const branch = FlatRow<bfloat16>(call.inputs[1], row);
        const bfloat16* const gate = Gate(call.inputs, row);
        bfloat16* const to = FlatRow<bfloat16>(call.output, row);
        for (int64_t i = 0; i < x.width; ++i) {
          const float gated = RoundThroughBf16(WidenBf16(gate[i]) * WidenBf16(branch[i]));
          to[i] = RoundToBf16(WidenBf16(residual[i]) + gated);
        }
      }
    };
    context.threads->ParallelFor(0, x.batch * x.rows, kRowRun, run);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const auto run = [&](int64_t first, int64_t end) { RowGradients(call, first, end); };
    context.threads->ParallelFor(0, x.batch * x.rows, kRowRun, run);
    if (call.grad_inputs[2].IsNull()) return absl::OkStatus();
    const auto column_run = [&](int64_t first, int64_t end) {
      GateGradient(call, first, end - first);
    };
    context.threads->ParallelFor(0, x.width, kTableColumnRun, column_run);
    return absl::OkStatus();
  }

 private:
  static const bfloat16* Gate(absl::Span<const Tensor> inputs, int64_t row) {
    return inputs[2].Row<bfloat16>(TableRow(inputs[3], row));
  }

  static void RowGradients(const BackwardCall& call, int64_t first_row, int64_t end_row) {
    const int64_t width = call.inputs[0].width;
    for (int64_t row = first_row; row < end_row; ++row) {
      const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row);
      if (!call.grad_inputs[0].IsNull())
        std::copy_n(grad, width, FlatRow<bfloat16>(call.grad_inputs[0], row));
      if (call.grad_inputs[1].IsNull()) continue;
      const bfloat16* const gate = Gate(call.inputs, row);
      bfloat16* const grad_branch = FlatRow<bfloat16>(call.grad_inputs[1], row);
      for (int64_t i = 0; i < width; ++i)
        grad_branch[i] = RoundToBf16(WidenBf16(grad[i]) * WidenBf16(gate[i]));
    }
  }

  static void GateGradient(const BackwardCall& call, int64_t first, int64_t count) {
    const Tensor& grad_gate = call.grad_inputs[2];
    ZeroColumns(grad_gate, first, count);
    for (int64_t row = 0; row < call.inputs[0].batch * call.inputs[0].rows; ++row) {
      const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row) + first;
      const bfloat16* const branch = FlatRow<bfloat16>(call.inputs[1], row) + first;
      bfloat16* const sums = grad_gate.Row<bfloat16>(TableRow(call.inputs[3], row)) + first;
      for (int64_t i = 0; i < count; ++i)
        AddInBf16(WidenBf16(grad[i]) * WidenBf16(branch[i]), &sums[i]);
    }
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() { return std::make_shared<GatedResidual>(); }

}  // namespace plumbline::provider
