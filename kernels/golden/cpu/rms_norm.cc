// kRmsNorm of the golden.
//
//   x(R, W), weight(1, G), W a multiple of G -> (R, W); each run of G channels is a norm of its own
//   forward   r = 1 / sqrt(mean(x^2) + epsilon); y = x r weight
//   backward  dn = dy weight, n = x r: dx = r (dn - n mean(dn n)); dweight = sum of dy n
// Rounding: y, dx and dweight, once each. Order: sums over G in the lanes of
// kernels/cpu/row_reductions.h; dweight as SumRowsInto, runs of a row ascending. Saved: r.
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/rounding.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rms.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

class RmsNorm final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kRmsNorm, call, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    return check.Type("x", x, {DType::kF32})
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, 1, CallCheck::kAny)
        .That(weight.width > 0 && x.width % weight.width == 0,
              "the width of x must be a multiple of the weight's")
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    return Scratch::Bytes<double>(x.NumElements() / call.parameters[0].width);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return SumRowsBytes(call.parameters[0]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const int64_t size = weight.width;
    const int64_t runs = x.width / size;
    double* const saved = static_cast<double*>(call.saved);
    ForEachRow(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
      for (int64_t run = 0; run < runs; ++run) {
        const float* const from = x.Row<float>(row, item) + run * size;
        float* const to = call.output.Row<float>(row, item) + run * size;
        const double reciprocal = ReciprocalRms(from, size, call.attributes.epsilon);
        if (saved != nullptr) saved[(item * x.rows + row) * runs + run] = reciprocal;
        for (int64_t i = 0; i < size; ++i)
          to[i] = static_cast<float>(from[i] * reciprocal * LoadValue(weight, 0, 0, i));
      }
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const Tensor& grad = call.grad_output;
    const int64_t size = weight.width;
    const int64_t runs = x.width / size;
    const double* const saved = static_cast<const double*>(call.saved);
    if (const Tensor& grad_x = call.grad_inputs[0]; !grad_x.IsNull()) {
      ForEachRow(*context.threads, x.batch, x.rows, [&](int64_t item, int64_t row) {
        for (int64_t run = 0; run < runs; ++run) {
          const float* const g = grad.Row<float>(row, item) + run * size;
          RmsGradient(
              x.Row<float>(row, item) + run * size, saved[(item * x.rows + row) * runs + run], size,
              [&](int64_t i) { return static_cast<double>(g[i]) * LoadValue(weight, 0, 0, i); },
              grad_x.Row<float>(row, item) + run * size);
        }
      });
    }
    Scratch scratch(context.workspace);
    SumRowsInto(*context.threads, x.batch, x.rows * runs, call.grad_parameters[0],
                scratch.Take<double>(size), OnlyRow,
                [&](int64_t item, int64_t row_and_run, int64_t column) {
                  const int64_t row = row_and_run / runs;
                  const int64_t place = row_and_run % runs * size + column;
                  return static_cast<double>(grad.Row<float>(row, item)[place]) *
                         x.Row<float>(row, item)[place] * saved[item * x.rows * runs + row_and_run];
                });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRmsNorm() { return std::make_shared<RmsNorm>(); }

}  // namespace plumbline::golden
