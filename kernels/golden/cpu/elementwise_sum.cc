// kResidual and kGradSum of the golden.
//
//   x(R, W), branch(R, W) -> (R, W): x + branch, one rounding (a float32 sum is the exact sum
//   rounded once). kResidual backward: both gradients are dy. kGradSum has none, and its output may
//   be its first input's memory.
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

class ElementwiseSum : public Operation {
 public:
  explicit ElementwiseSum(OpKind op) : op_(op) {}

  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, op_, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& a = call.inputs[0];
    const Tensor& b = call.inputs[1];
    return check.Type("the first input", a, {DType::kF32})
        .Type("the second input", b, {DType::kF32})
        .Shape("the second input", b, a.batch, a.rows, a.width)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, a.batch, a.rows, a.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    ForEachRow(*context.threads, output.batch, output.rows, [&](int64_t item, int64_t row) {
      const float* const a = call.inputs[0].Row<float>(row, item);
      const float* const b = call.inputs[1].Row<float>(row, item);
      float* const to = output.Row<float>(row, item);
      for (int64_t i = 0; i < output.width; ++i) to[i] = a[i] + b[i];
    });
    return absl::OkStatus();
  }

 private:
  const OpKind op_;
};

class Residual final : public ElementwiseSum {
 public:
  Residual() : ElementwiseSum(OpKind::kResidual) {}

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad = call.grad_output;
    for (const Tensor& to : call.grad_inputs) {
      if (to.IsNull()) continue;
      ForEachRow(*context.threads, grad.batch, grad.rows, [&](int64_t item, int64_t row) {
        std::copy_n(grad.Row<float>(row, item), grad.width, to.Row<float>(row, item));
      });
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeResidual() { return std::make_shared<Residual>(); }
std::shared_ptr<const Operation> MakeGradSum() {
  return std::make_shared<ElementwiseSum>(OpKind::kGradSum);
}

}  // namespace plumbline::golden
