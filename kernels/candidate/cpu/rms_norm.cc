#include "kernels/candidate/cpu/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/parameter_gradient.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/row_reductions.h"

namespace plumbline::candidate {
namespace {

// Scratch of one backward.
struct BackwardLayout {
  BackwardLayout(const Tensor& x, int64_t group, int64_t workers, uint8_t* workspace) {
    WorkspaceLayout layout(workspace);
    run_sums = layout.Floats(RunCount(x.batch * x.rows) * group);
    grads = layout.Floats(workers * group);
    values = layout.Floats(workers * group);
    bytes = layout.bytes();
  }

  float* run_sums;        // of the weight's gradient
  float *grads, *values;  // one run of channels of each worker
  size_t bytes;
};

class RmsNorm final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kRmsNorm, call, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    return check.Type("x", x, {DType::kBF16})
        .Type("weight", weight, {DType::kBF16})
        .Shape("weight", weight, 1, 1, CallCheck::kAny)
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .That(weight.width > 0 && x.width % weight.width == 0,
              absl::StrCat("the width ", x.width, " must be a multiple of the weight's width ",
                           weight.width))
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    return static_cast<size_t>(x.batch * x.rows * (x.width / call.parameters[0].width)) *
           sizeof(float);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return static_cast<size_t>(context.threads->num_threads() * call.parameters[0].width) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return Layout(call, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const bfloat16* weight = call.parameters[0].Row<bfloat16>(0);
    const int64_t group = call.parameters[0].width;
    float* scratch = reinterpret_cast<float*>(context.workspace.data());
    float* saved = static_cast<float*>(call.saved);
    const auto body = [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) {
        const bfloat16* from = x.Row<bfloat16>(i % x.rows, i / x.rows);
        bfloat16* to = call.output.Row<bfloat16>(i % x.rows, i / x.rows);
        for (int64_t column = 0; column < x.width; column += group) {
          const float r = NormaliseRun(from + column, weight, group, call.attributes.epsilon,
                                       scratch + worker * group, to + column);
          if (saved != nullptr) saved[(i * x.width + column) / group] = r;
        }
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowGrain, body);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& grad_x = call.grad_inputs[0];
    const Tensor& grad_weight = call.grad_parameters[0];
    const bfloat16* weight = call.parameters[0].Row<bfloat16>(0);
    const int64_t group = call.parameters[0].width;
    const float* saved = static_cast<const float*>(call.saved);
    const BackwardLayout layout = Layout(call, context);
    const auto body = [&](int64_t first, int64_t last, int worker) {
      float* weight_sum = nullptr;
      if (!grad_weight.IsNull()) {
        weight_sum = layout.run_sums + first / kRowsPerRun * group;
        std::fill_n(weight_sum, group, 0.0f);
      }
      float* grad = layout.grads + worker * group;
      float* values = layout.values + worker * group;
      for (int64_t i = first; i < last; ++i) {
        const int64_t item = i / x.rows;
        const int64_t row = i % x.rows;
        for (int64_t column = 0; column < x.width; column += group) {
          WidenBf16(absl::MakeConstSpan(call.grad_output.Row<bfloat16>(row, item) + column, group),
                    grad);
          WidenBf16(absl::MakeConstSpan(x.Row<bfloat16>(row, item) + column, group), values);
          NormaliseRunBackward(
              grad, values, weight, group, saved[(i * x.width + column) / group], weight_sum,
              grad_x.IsNull() ? nullptr : grad_x.Row<bfloat16>(row, item) + column);
        }
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowsPerRun, body);
    if (!grad_weight.IsNull()) {
      AddRuns(*context.threads, x.batch * x.rows, layout.run_sums, grad_weight);
    }
    return absl::OkStatus();
  }

 private:
  static BackwardLayout Layout(const BackwardCall& call, const ExecutionContext& context) {
    return BackwardLayout(call.inputs[0], call.parameters[0].width, context.threads->num_threads(),
                          context.workspace.data());
  }
};

}  // namespace

float NormaliseRun(const bfloat16* x, const bfloat16* weight, int64_t width, float epsilon,
                   float* scratch, bfloat16* output) {
  WidenBf16(absl::MakeConstSpan(x, width), scratch);
  const float mean_square = RowSumOfSquares(scratch, width) / static_cast<float>(width);
  const float r = 1.0f / std::sqrt(mean_square + epsilon);
  for (int64_t i = 0; i < width; ++i) {
    output[i] = RoundToBf16(scratch[i] * r * WidenBf16(weight[i]));
  }
  return r;
}

void NormaliseRunBackward(float* grad, float* x, const bfloat16* weight, int64_t width,
                          float reciprocal_rms, float* weight_sum, bfloat16* grad_x) {
  for (int64_t i = 0; i < width; ++i) x[i] *= reciprocal_rms;
  if (weight_sum != nullptr) {
    for (int64_t i = 0; i < width; ++i) weight_sum[i] += grad[i] * x[i];
  }
  if (grad_x == nullptr) return;
  for (int64_t i = 0; i < width; ++i) grad[i] *= WidenBf16(weight[i]);
  const float mean = RowDot(grad, x, width) / static_cast<float>(width);
  for (int64_t i = 0; i < width; ++i) {
    grad_x[i] = RoundToBf16(reciprocal_rms * (grad[i] - x[i] * mean));
  }
}

std::shared_ptr<const Operation> MakeRmsNorm() { return std::make_shared<RmsNorm>(); }

}  // namespace plumbline::candidate
