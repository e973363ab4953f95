// kResidual and kGradSum of the provider: round(a + b), a and b (R, W) of one type, bfloat16 or
// float32 (no rounding but the addition's). Both gradients of a residual are g. No reductions.
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/values.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 16;

// `op` is kResidual, or kGradSum, which has no backward.
class ElementwiseSum : public Operation {
 public:
  explicit ElementwiseSum(OpKind op) : op_(op) {}

  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, op_, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& a = call.inputs[0];
    return check.Type("the first input", a, {DType::kBF16, DType::kF32})
        .Type("the second input", call.inputs[1], {a.dtype})
        .Shape("the second input", call.inputs[1], a.batch, a.rows, a.width)
        .Type("output", call.output, {a.dtype})
        .Shape("output", call.output, a.batch, a.rows, a.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& a = call.inputs[0];
    const Tensor& b = call.inputs[1];
    const auto run = [&](int64_t first_row, int64_t end_row) {
      for (int64_t row = first_row; row < end_row; ++row) {
        if (a.dtype == DType::kBF16) {
          AddRow<bfloat16>(a, b, call.output, row);
        } else {
          AddRow<float>(a, b, call.output, row);
        }
      }
    };
    context.threads->ParallelFor(0, a.batch * a.rows, kRowRun, run);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (op_ == OpKind::kGradSum) return Operation::Backward(context, call);
    const Tensor& grad = call.grad_output;
    for (const Tensor& to : call.grad_inputs) {
      if (to.IsNull()) continue;
      for (int64_t item = 0; item < grad.batch; ++item) {
        for (int64_t row = 0; row < grad.rows; ++row) ConvertRow(grad, row, to, row, item);
      }
    }
    return absl::OkStatus();
  }

 private:
  static bfloat16 Sum(bfloat16 a, bfloat16 b) { return RoundToBf16(WidenBf16(a) + WidenBf16(b)); }
  static float Sum(float a, float b) { return a + b; }

  // The output may be a's memory.
  template <typename T>
  static void AddRow(const Tensor& a, const Tensor& b, const Tensor& output, int64_t row) {
    const T* const left = FlatRow<T>(a, row);
    const T* const right = FlatRow<T>(b, row);
    T* const to = FlatRow<T>(output, row);
    for (int64_t i = 0; i < a.width; ++i) to[i] = Sum(left[i], right[i]);
  }

  const OpKind op_;
};

}  // namespace

std::shared_ptr<const Operation> MakeResidual() {
  return std::make_shared<ElementwiseSum>(OpKind::kResidual);
}
std::shared_ptr<const Operation> MakeGradSum() {
  return std::make_shared<ElementwiseSum>(OpKind::kGradSum);
}

}  // namespace plumbline::provider
