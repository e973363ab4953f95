// kModulatedRmsNorm of the golden.
//
//   x(R, H), scale(table, H), shift(table, H), index(R, 1) int64, weight(1, H) -> (R, H)
//   forward   r = 1 / sqrt(mean(x^2) + epsilon); m = x r weight; y = m (1 + scale) + shift, scale
//             and shift the table's row index[row]
//   backward  dm = dy (1 + scale); dn = dm weight, n = x r: dx = r (dn - n mean(dn n));
//             dweight = sum of dm n; per table row, dscale = sum of dy m, dshift = sum of dy
// Rounding: y, dx, dweight, dscale and dshift, once each. Order: sums over H in the lanes of
// kernels/cpu/row_reductions.h; the sums over rows as SumRowsInto. Saved: r.
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/rounding.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rms.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

enum Input { kX, kScale, kShift, kIndex };

class ModulatedRmsNorm final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kModulatedRmsNorm, call, 4, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[kX];
    const Tensor& scale = call.inputs[kScale];
    return check.Type("x", x, {DType::kF32})
        .Type("scale", scale, {DType::kF32})
        .Shape("scale", scale, 1, CallCheck::kAny, x.width)
        .Type("shift", call.inputs[kShift], {DType::kF32})
        .Shape("shift", call.inputs[kShift], 1, scale.rows, x.width)
        .Type("index", call.inputs[kIndex], {DType::kI64})
        .Shape("index", call.inputs[kIndex], 1, x.rows, 1)
        .Type("weight", call.parameters[0], {DType::kBF16, DType::kF32})
        .Shape("weight", call.parameters[0], 1, 1, x.width)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Scratch::Bytes<double>(call.inputs[kX].batch * call.inputs[kX].rows);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return 2 * SumRowsBytes(call.inputs[kScale]) + SumRowsBytes(call.parameters[0]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    const Tensor& weight = call.parameters[0];
    double* const saved = static_cast<double*>(call.saved);
    ForEachRow(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
      const int64_t slot = *call.inputs[kIndex].Row<int64_t>(row);
      const float* const scale = call.inputs[kScale].Row<float>(slot);
      const float* const shift = call.inputs[kShift].Row<float>(slot);
      const float* const from = x.Row<float>(row, item);
      float* const to = call.output.Row<float>(row, item);
      const double reciprocal = ReciprocalRms(from, x.width, call.attributes.epsilon);
      if (saved != nullptr) saved[item * x.rows + row] = reciprocal;
      for (int64_t i = 0; i < x.width; ++i) {
        const double normed = from[i] * reciprocal * LoadValue(weight, 0, 0, i);
        to[i] = static_cast<float>(normed * (1.0 + scale[i]) + shift[i]);
      }
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    ThreadPool& threads = *context.threads;
    const Tensor& x = call.inputs[kX];
    const Tensor& scale = call.inputs[kScale];
    const Tensor& weight = call.parameters[0];
    const Tensor& grad = call.grad_output;
    const double* const saved = static_cast<const double*>(call.saved);
    const auto slot = [&](int64_t row) { return *call.inputs[kIndex].Row<int64_t>(row); };
    const auto grad_at = [&](int64_t item, int64_t row, int64_t column) {
      return static_cast<double>(grad.Row<float>(row, item)[column]);
    };
    const auto normalised = [&](int64_t item, int64_t row, int64_t column) {
      return x.Row<float>(row, item)[column] * saved[item * x.rows + row];
    };

    if (const Tensor& grad_x = call.grad_inputs[kX]; !grad_x.IsNull()) {
      ForEachRow(threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
        const float* const scale_row = scale.Row<float>(slot(row));
        const float* const g = grad.Row<float>(row, item);
        RmsGradient(
            x.Row<float>(row, item), saved[item * x.rows + row], x.width,
            [&](int64_t i) { return g[i] * (1.0 + scale_row[i]) * LoadValue(weight, 0, 0, i); },
            grad_x.Row<float>(row, item));
      });
    }
    Scratch scratch(context.workspace);
    SumRowsInto(threads, x.batch, x.rows, call.grad_inputs[kScale],
                scratch.Take<double>(scale.rows * scale.width), slot,
                [&](int64_t item, int64_t row, int64_t column) {
                  return grad_at(item, row, column) * normalised(item, row, column) *
                         LoadValue(weight, 0, 0, column);
                });
    SumRowsInto(threads, x.batch, x.rows, call.grad_inputs[kShift],
                scratch.Take<double>(scale.rows * scale.width), slot, grad_at);
    SumRowsInto(threads, x.batch, x.rows, call.grad_parameters[0], scratch.Take<double>(x.width),
                OnlyRow, [&](int64_t item, int64_t row, int64_t column) {
                  return grad_at(item, row, column) * (1.0 + scale.Row<float>(slot(row))[column]) *
                         normalised(item, row, column);
                });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<ModulatedRmsNorm>();
}

}  // namespace plumbline::golden
