// kLinear of the golden.
//
//   x(R, K), weight(N, K)[, bias(1, N)] -> (R, N)
//   forward   y = x W^T + bias
//   backward  dx = dy W; dW = dy^T x and db = sum of dy, over the rows of all batch items
// Rounding: y, dx, dW and db, once each. Order: that of kernels/cpu/gemm.h over K, N and the rows;
// db as SumRowsInto.
#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/product.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

class Linear final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kLinear, call, 1, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    check.Type("x", x, {DType::kF32})
        .That(IsFoldable(x), "the batch items of x must follow one another")
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, CallCheck::kAny, x.width)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, weight.rows)
        .That(IsFoldable(call.output), "the batch items of the output must follow one another");
    if (call.parameters.size() == 2) {
      check.Type("bias", call.parameters[1], {DType::kBF16, DType::kF32})
          .Shape("bias", call.parameters[1], 1, 1, weight.rows);
    }
    return check.status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall&, const ExecutionContext& context) const override {
    return ProductBytes(context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return ProductBytes(context) + BiasBytes(call);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor bias = call.parameters.size() == 2 ? call.parameters[1] : Tensor();
    Project(GemmOperand::Of(x), x.batch * x.rows, call.parameters[0], bias, call.output,
            *context.threads, context.workspace);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    ThreadPool& threads = *context.threads;
    Scratch scratch(context.workspace);
    const absl::Span<uint8_t> product_workspace = scratch.TakeBytes(ProductBytes(context));
    const Tensor& grad = call.grad_output;
    const int64_t rows = grad.batch * grad.rows;
    const Tensor& weight = call.parameters[0];
    if (const Tensor& grad_x = call.grad_inputs[0]; !grad_x.IsNull()) {
      Gemm<double>(
          {rows, weight.width, weight.rows}, GemmOperand::Of(grad), GemmOperand::Of(weight),
          [&](int64_t row, int64_t column, int64_t count, const double* values) {
            float* const to = grad_x.Row<float>(row % grad_x.rows, row / grad_x.rows) + column;
            for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
          },
          product_workspace, threads);
    }
    WeightGradient(GemmOperand::Of(grad), GemmOperand::Of(call.inputs[0]), rows,
                   call.grad_parameters[0], threads, product_workspace);
    if (call.parameters.size() == 2) {
      double* const sums = scratch.Take<double>(weight.rows);
      SumRowsInto(threads, grad.batch, grad.rows, call.grad_parameters[1], sums, OnlyRow,
                  [&](int64_t item, int64_t row, int64_t column) {
                    return static_cast<double>(grad.Row<float>(row, item)[column]);
                  });
    }
    return absl::OkStatus();
  }

 private:
  static size_t BiasBytes(const BackwardCall& call) {
    return call.parameters.size() == 2 ? SumRowsBytes(call.parameters[1]) : 0;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeLinear() { return std::make_shared<Linear>(); }

}  // namespace plumbline::golden
