// kModulatedRmsNorm of the provider.
//
//   x(R, H) bfloat16, scale(table, H), shift(table, H) bfloat16, index(R, 1) int64, weight(1, H)
//   bfloat16 -> (R, H)
//   forward   n = round(w (r x)); m = round(1 + scale[index]); round(round(n m) + shift[index])
//   backward  of g: dshift[index] += g; dscale[index] += round(g n); dn = round(g m);
//             dx from dn: rms_norm.h; dw = round(sum of dn x r over all rows and items)
// Reductions: over channels as in row_reductions.h; the tables' in bfloat16 (table_gradient.h); dw
// a float32 sum; both in row order, batch item after item. Saved for the backward: r of every row.
#include <array>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/rms_norm.h"
#include "kernels/provider/cpu/table_gradient.h"
#include "kernels/provider/cpu/values.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 8;

float Multiplier(bfloat16 scale) { return RoundThroughBf16(1.0f + WidenBf16(scale)); }

class ModulatedRmsNorm : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kModulatedRmsNorm, call, 4, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& scale = call.inputs[1];
    return check.Type("x", x, {DType::kBF16})
        .Type("scale", scale, {DType::kBF16})
        .Shape("scale", scale, 1, CallCheck::kAny, x.width)
        .Type("shift", call.inputs[2], {DType::kBF16})
        .Shape("shift", call.inputs[2], 1, scale.rows, x.width)
        .Type("index", call.inputs[3], {DType::kI64})
        .Shape("index", call.inputs[3], 1, x.rows, 1)
        .Type("weight", call.parameters[0], {DType::kBF16})
        .Shape("weight", call.parameters[0], 1, 1, x.width)
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[0].batch * call.inputs[0].rows) * sizeof(float);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return SlotCount(context) * call.inputs[0].width * sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return SlotCount(context) * 2 * call.inputs[0].width * sizeof(float);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const bfloat16* const weight = call.parameters[0].Row<bfloat16>(0);
    float* const saved = static_cast<float*>(call.saved);
    const auto run = [&](int64_t first_row, int64_t end_row, int slot) {
      float* const values = SlotScratch(context, slot, x.width);
      for (int64_t row = first_row; row < end_row; ++row) {
        LoadFlatRow(x, row, 0, x.width, DType::kBF16, values);
        const float inverse_rms = InverseRms(values, x.width, call.attributes.epsilon);
        const int64_t table_row = TableRow(call.inputs[3], row);
        const bfloat16* const scale = call.inputs[1].Row<bfloat16>(table_row);
        const bfloat16* const shift = call.inputs[2].Row<bfloat16>(table_row);
        bfloat16* const to = FlatRow<bfloat16>(call.output, row);
        for (int64_t i = 0; i < x.width; ++i) {
          const float normalised = NormalisedValue(values[i], WidenBf16(weight[i]), inverse_rms);
          const float scaled = RoundThroughBf16(normalised * Multiplier(scale[i]));
          to[i] = RoundToBf16(scaled + WidenBf16(shift[i]));
        }
        if (saved != nullptr) saved[row] = inverse_rms;
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowRun, run);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull()) InputGradient(context, call);
    const auto run = [&](int64_t first, int64_t end) { ColumnGradients(call, first, end - first); };
    context.threads->ParallelFor(0, call.inputs[0].width, kTableColumnRun, run);
    return absl::OkStatus();
  }

 private:
  static void InputGradient(const ExecutionContext& context, const BackwardCall& call) {
    const Tensor& x = call.inputs[0];
    const bfloat16* const weight = call.parameters[0].Row<bfloat16>(0);
    const float* const saved = static_cast<const float*>(call.saved);
    const auto run = [&](int64_t first_row, int64_t end_row, int slot) {
      float* const values = SlotScratch(context, slot, 2 * x.width);
      float* const weighted = values + x.width;
      for (int64_t row = first_row; row < end_row; ++row) {
        LoadFlatRow(x, row, 0, x.width, DType::kBF16, values);
        const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row);
        const bfloat16* const scale = call.inputs[1].Row<bfloat16>(TableRow(call.inputs[3], row));
        for (int64_t i = 0; i < x.width; ++i) {
          const float grad_normalised = RoundThroughBf16(WidenBf16(grad[i]) * Multiplier(scale[i]));
          weighted[i] = grad_normalised * WidenBf16(weight[i]);
        }
        RmsNormInputGradient(values, weighted, saved[row], x.width,
                             FlatRow<bfloat16>(call.grad_inputs[0], row));
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowRun, run);
  }

  // The gradients that are sums over rows, of columns [first, first + count).
  static void ColumnGradients(const BackwardCall& call, int64_t first, int64_t count) {
    const Tensor& x = call.inputs[0];
    const Tensor& grad_scale = call.grad_inputs[1];
    const Tensor& grad_shift = call.grad_inputs[2];
    const bfloat16* const weight = call.parameters[0].Row<bfloat16>(0) + first;
    const float* const saved = static_cast<const float*>(call.saved);
    if (!grad_scale.IsNull()) ZeroColumns(grad_scale, first, count);
    if (!grad_shift.IsNull()) ZeroColumns(grad_shift, first, count);
    std::array<float, kTableColumnRun> weight_sums = {};

    for (int64_t row = 0; row < x.batch * x.rows; ++row) {
      const int64_t table_row = TableRow(call.inputs[3], row);
      const float inverse_rms = saved[row];
      const bfloat16* const values = FlatRow<bfloat16>(x, row) + first;
      const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row) + first;
      const bfloat16* const scale = call.inputs[1].Row<bfloat16>(table_row) + first;
      if (!grad_shift.IsNull()) {
        bfloat16* const sums = grad_shift.Row<bfloat16>(table_row) + first;
        for (int64_t i = 0; i < count; ++i) AddInBf16(WidenBf16(grad[i]), &sums[i]);
      }
      if (!grad_scale.IsNull()) {
        bfloat16* const sums = grad_scale.Row<bfloat16>(table_row) + first;
        for (int64_t i = 0; i < count; ++i) {
          const float normalised =
              NormalisedValue(WidenBf16(values[i]), WidenBf16(weight[i]), inverse_rms);
          AddInBf16(WidenBf16(grad[i]) * normalised, &sums[i]);
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        const float grad_normalised = RoundThroughBf16(WidenBf16(grad[i]) * Multiplier(scale[i]));
        weight_sums[i] += grad_normalised * WidenBf16(values[i]) * inverse_rms;
      }
    }
    if (!call.grad_parameters[0].IsNull())
      StoreFlatRow(weight_sums.data(), call.grad_parameters[0], 0, first, count);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<ModulatedRmsNorm>();
}

}  // namespace plumbline::provider
