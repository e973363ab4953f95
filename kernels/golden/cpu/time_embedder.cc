// kTimeEmbedder of the golden.
//
//   features(T, F), linear_1 (H, F) and (1, H), linear_2 (E, H) and (1, E) -> (T, E)
//   forward   h = features W1^T + b1; y = SiLU(h) W2^T + b2
//   backward  dh = (dy W2) SiLU'(h); dfeatures = dh W1; dW2 = dy^T SiLU(h); dW1 = dh^T features;
//             db2, db1 = sums of dy, dh over the rows
// Rounding: y and each gradient asked for, once; h, SiLU(h) and dh stay float64. Order: that of
// kernels/cpu/gemm.h over F, H, E and the rows; db as SumRowsInto. Saved: h.
#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/product.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/golden/cpu/silu.h"

namespace plumbline::golden {
namespace {

enum Parameter { kWeight1, kBias1, kWeight2, kBias2 };

class TimeEmbedder final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kTimeEmbedder, call, 1, 4);
    if (!check.ok()) return check.status();
    const Tensor& features = call.inputs[0];
    const Tensor& weight_1 = call.parameters[kWeight1];
    const Tensor& weight_2 = call.parameters[kWeight2];
    for (const Tensor& parameter : call.parameters)
      check.Type("a parameter", parameter, {DType::kBF16, DType::kF32});
    return check.Type("features", features, {DType::kF32})
        .That(IsFoldable(features), "the batch items of features must follow one another")
        .Shape("linear_1.weight", weight_1, 1, CallCheck::kAny, features.width)
        .Shape("linear_1.bias", call.parameters[kBias1], 1, 1, weight_1.rows)
        .Shape("linear_2.weight", weight_2, 1, CallCheck::kAny, weight_1.rows)
        .Shape("linear_2.bias", call.parameters[kBias2], 1, 1, weight_2.rows)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, features.batch, features.rows, weight_2.rows)
        .That(IsFoldable(call.output), "the batch items of the output must follow one another")
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Scratch::Bytes<double>(HiddenValues(call.inputs[0], call.parameters));
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return 2 * Scratch::Bytes<double>(HiddenValues(call.inputs[0], call.parameters)) +
           ProductBytes(context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return 2 * Scratch::Bytes<double>(HiddenValues(call.inputs[0], call.parameters)) +
           ProductBytes(context) + SumRowsBytes(call.parameters[kBias1]) +
           SumRowsBytes(call.parameters[kBias2]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    ThreadPool& threads = *context.threads;
    const Tensor& features = call.inputs[0];
    const int64_t rows = features.batch * features.rows;
    const int64_t width = call.parameters[kWeight1].rows;
    Scratch scratch(context.workspace);
    double* const own_hidden = scratch.Take<double>(rows * width);
    double* const hidden = call.saved != nullptr ? static_cast<double*>(call.saved) : own_hidden;
    double* const activated = scratch.Take<double>(rows * width);
    const absl::Span<uint8_t> product_workspace = scratch.TakeBytes(ProductBytes(context));
    Project(GemmOperand::Of(features), rows, call.parameters[kWeight1], call.parameters[kBias1],
            hidden, threads, product_workspace);
    Activate(hidden, rows, width, activated, threads);
    Project(DoubleOperand(activated, width), rows, call.parameters[kWeight2],
            call.parameters[kBias2], call.output, threads, product_workspace);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    ThreadPool& threads = *context.threads;
    const Tensor& features = call.inputs[0];
    const Tensor& grad = call.grad_output;
    const Tensor& weight_1 = call.parameters[kWeight1];
    const Tensor& weight_2 = call.parameters[kWeight2];
    const int64_t rows = grad.batch * grad.rows;
    const int64_t width = weight_1.rows;
    const double* const hidden = static_cast<const double*>(call.saved);
    Scratch scratch(context.workspace);
    double* const activated = scratch.Take<double>(rows * width);
    double* const grad_hidden = scratch.Take<double>(rows * width);
    const absl::Span<uint8_t> product_workspace = scratch.TakeBytes(ProductBytes(context));

    Activate(hidden, rows, width, activated, threads);
    WeightGradient(GemmOperand::Of(grad), DoubleOperand(activated, width), rows,
                   call.grad_parameters[kWeight2], threads, product_workspace);
    SumRowsInto(threads, grad.batch, grad.rows, call.grad_parameters[kBias2],
                scratch.Take<double>(weight_2.rows), OnlyRow,
                [&](int64_t item, int64_t row, int64_t column) {
                  return static_cast<double>(grad.Row<float>(row, item)[column]);
                });
    Gemm<double>(
        {rows, width, weight_2.rows}, GemmOperand::Of(grad), GemmOperand::Of(weight_2),
        [&](int64_t row, int64_t column, int64_t count, const double* values) {
          const int64_t offset = row * width + column;
          for (int64_t i = 0; i < count; ++i)
            grad_hidden[offset + i] = values[i] * SiluDerivative(hidden[offset + i]);
        },
        product_workspace, threads);
    WeightGradient(DoubleOperand(grad_hidden, width), GemmOperand::Of(features), rows,
                   call.grad_parameters[kWeight1], threads, product_workspace);
    SumRowsInto(
        threads, 1, rows, call.grad_parameters[kBias1], scratch.Take<double>(width), OnlyRow,
        [&](int64_t, int64_t row, int64_t column) { return grad_hidden[row * width + column]; });
    if (const Tensor& grad_features = call.grad_inputs[0]; !grad_features.IsNull()) {
      Gemm<double>(
          {rows, features.width, width}, DoubleOperand(grad_hidden, width),
          GemmOperand::Of(weight_1),
          [&](int64_t row, int64_t column, int64_t count, const double* values) {
            float* const to =
                grad_features.Row<float>(row % features.rows, row / features.rows) + column;
            for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
          },
          product_workspace, threads);
    }
    return absl::OkStatus();
  }

 private:
  static int64_t HiddenValues(const Tensor& features, absl::Span<const Tensor> parameters) {
    return features.batch * features.rows * parameters[kWeight1].rows;
  }

  static void Activate(const double* hidden, int64_t rows, int64_t width, double* activated,
                       ThreadPool& threads) {
    ForEachRow(threads, 1, rows, [&](int64_t, int64_t row) {
      for (int64_t i = row * width; i < (row + 1) * width; ++i) activated[i] = Silu(hidden[i]);
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeEmbedder() { return std::make_shared<TimeEmbedder>(); }

}  // namespace plumbline::golden
