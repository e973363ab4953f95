// kAdalnProjection of the golden.
//
//   temb(T, E), weight(N, E), bias(1, N) -> (T, N)
//   forward   y = SiLU(temb) W^T + bias
//   backward  dtemb = (dy W) SiLU'(temb); dW = dy^T SiLU(temb); db = sum of dy over the rows
// Rounding: y, dtemb, dW and db, once each; SiLU stays float64. Order: that of kernels/cpu/gemm.h
// over E, N and the rows; db as SumRowsInto.
#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/product.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/golden/cpu/silu.h"

namespace plumbline::golden {
namespace {

class AdalnProjection final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kAdalnProjection, call, 1, 2);
    if (!check.ok()) return check.status();
    const Tensor& temb = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    return check.Type("temb", temb, {DType::kF32})
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, CallCheck::kAny, temb.width)
        .Type("bias", call.parameters[1], {DType::kBF16, DType::kF32})
        .Shape("bias", call.parameters[1], 1, 1, weight.rows)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, temb.batch, temb.rows, weight.rows)
        .That(IsFoldable(call.output), "the batch items of the output must follow one another")
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return ActivatedBytes(call.inputs[0]) + ProductBytes(context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return ActivatedBytes(call.inputs[0]) + ProductBytes(context) +
           SumRowsBytes(call.parameters[1]);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& temb = call.inputs[0];
    Scratch scratch(context.workspace);
    double* const activated = Activate(temb, scratch, *context.threads);
    Project(DoubleOperand(activated, temb.width), temb.batch * temb.rows, call.parameters[0],
            call.parameters[1], call.output, *context.threads,
            scratch.TakeBytes(ProductBytes(context)));
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    ThreadPool& threads = *context.threads;
    const Tensor& temb = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const Tensor& grad = call.grad_output;
    const int64_t rows = grad.batch * grad.rows;
    Scratch scratch(context.workspace);
    double* const activated = Activate(temb, scratch, threads);
    const absl::Span<uint8_t> product_workspace = scratch.TakeBytes(ProductBytes(context));
    if (const Tensor& grad_temb = call.grad_inputs[0]; !grad_temb.IsNull()) {
      Gemm<double>(
          {rows, weight.width, weight.rows}, GemmOperand::Of(grad), GemmOperand::Of(weight),
          [&](int64_t row, int64_t column, int64_t count, const double* values) {
            const int64_t item = row / temb.rows;
            const float* const from = temb.Row<float>(row % temb.rows, item) + column;
            float* const to = grad_temb.Row<float>(row % temb.rows, item) + column;
            for (int64_t i = 0; i < count; ++i)
              to[i] = static_cast<float>(values[i] * SiluDerivative(from[i]));
          },
          product_workspace, threads);
    }
    WeightGradient(GemmOperand::Of(grad), DoubleOperand(activated, temb.width), rows,
                   call.grad_parameters[0], threads, product_workspace);
    SumRowsInto(threads, grad.batch, grad.rows, call.grad_parameters[1],
                scratch.Take<double>(weight.rows), OnlyRow,
                [&](int64_t item, int64_t row, int64_t column) {
                  return static_cast<double>(grad.Row<float>(row, item)[column]);
                });
    return absl::OkStatus();
  }

 private:
  static size_t ActivatedBytes(const Tensor& temb) {
    return Scratch::Bytes<double>(temb.NumElements());
  }

  // SiLU(temb), (batch * rows, E).
  static double* Activate(const Tensor& temb, Scratch& scratch, ThreadPool& threads) {
    double* const activated = scratch.Take<double>(temb.NumElements());
    ForEachRow(threads, temb.batch, temb.rows, [&](int64_t item, int64_t row) {
      const float* const from = temb.Row<float>(row, item);
      double* const to = activated + (item * temb.rows + row) * temb.width;
      for (int64_t i = 0; i < temb.width; ++i) to[i] = Silu(from[i]);
    });
    return activated;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAdalnProjection() {
  return std::make_shared<AdalnProjection>();
}

}  // namespace plumbline::golden
