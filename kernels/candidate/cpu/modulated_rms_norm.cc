#include <algorithm>

#include "absl/types/span.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/parameter_gradient.h"
#include "kernels/candidate/cpu/rms_norm.h"
#include "kernels/candidate/cpu/table_gradient.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/call_check.h"

namespace plumbline::candidate {
namespace {

// Scratch of one backward.
struct BackwardLayout {
  BackwardLayout(const BackwardCall& call, const ExecutionContext& context) {
    const Tensor& x = call.inputs[0];
    const int64_t workers = context.threads->num_threads();
    WorkspaceLayout layout(context.workspace.data());
    run_sums = layout.Floats(RunCount(x.batch * x.rows) * x.width);
    grads = layout.Floats(workers * x.width);
    values = layout.Floats(workers * x.width);
    table_sums = layout.Floats(call.inputs[1].rows * x.width);
    bytes = layout.bytes();
  }

  float* run_sums;        // of the weight's gradient
  float *grads, *values;  // one row of each worker
  float* table_sums;      // of one table's gradient at a time
  size_t bytes;
};

class ModulatedRmsNorm final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kModulatedRmsNorm, call, 4, 1);
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
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[0].batch * call.inputs[0].rows) * sizeof(float);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return static_cast<size_t>(context.threads->num_threads() * call.inputs[0].width) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return BackwardLayout(call, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& index = call.inputs[3];
    float* scratch = reinterpret_cast<float*>(context.workspace.data());
    float* saved = static_cast<float*>(call.saved);
    const auto body = [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t item = i / x.rows;
        const int64_t row = i % x.rows;
        const int64_t table_row = *index.Row<int64_t>(row);
        const float r = ModulatedRmsNormRow(
            x.Row<bfloat16>(row, item), call.parameters[0].Row<bfloat16>(0),
            call.inputs[1].Row<bfloat16>(table_row), call.inputs[2].Row<bfloat16>(table_row),
            x.width, call.attributes.epsilon, scratch + worker * x.width,
            call.output.Row<bfloat16>(row, item));
        if (saved != nullptr) saved[i] = r;
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowGrain, body);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const BackwardLayout layout(call, context);
    NormGradients(context, call, layout);
    TableGradients(context, call, layout);
    return absl::OkStatus();
  }

 private:
  // dx and dweight.
  static void NormGradients(const ExecutionContext& context, const BackwardCall& call,
                            const BackwardLayout& layout) {
    const Tensor& x = call.inputs[0];
    const Tensor& grad_x = call.grad_inputs[0];
    const Tensor& grad_weight = call.grad_parameters[0];
    if (grad_x.IsNull() && grad_weight.IsNull()) return;
    const float* saved = static_cast<const float*>(call.saved);
    const auto body = [&](int64_t first, int64_t last, int worker) {
      float* weight_sum = nullptr;
      if (!grad_weight.IsNull()) {
        weight_sum = layout.run_sums + first / kRowsPerRun * x.width;
        std::fill_n(weight_sum, x.width, 0.0f);
      }
      float* grad = layout.grads + worker * x.width;
      float* values = layout.values + worker * x.width;
      for (int64_t i = first; i < last; ++i) {
        const int64_t item = i / x.rows;
        const int64_t row = i % x.rows;
        const bfloat16* g = call.grad_output.Row<bfloat16>(row, item);
        const bfloat16* scale = call.inputs[1].Row<bfloat16>(*call.inputs[3].Row<int64_t>(row));
        for (int64_t c = 0; c < x.width; ++c) {
          grad[c] =
              RoundThroughBf16(WidenBf16(g[c]) * RoundThroughBf16(1.0f + WidenBf16(scale[c])));
        }
        WidenBf16(absl::MakeConstSpan(x.Row<bfloat16>(row, item), x.width), values);
        NormaliseRunBackward(grad, values, call.parameters[0].Row<bfloat16>(0), x.width, saved[i],
                             weight_sum,
                             grad_x.IsNull() ? nullptr : grad_x.Row<bfloat16>(row, item));
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowsPerRun, body);
    if (!grad_weight.IsNull()) {
      AddRuns(*context.threads, x.batch * x.rows, layout.run_sums, grad_weight);
    }
  }

  // dscale and dshift.
  static void TableGradients(const ExecutionContext& context, const BackwardCall& call,
                             const BackwardLayout& layout) {
    const Tensor& x = call.inputs[0];
    const Tensor& index = call.inputs[3];
    const Tensor& grad = call.grad_output;
    const float* saved = static_cast<const float*>(call.saved);
    if (const Tensor& grad_scale = call.grad_inputs[1]; !grad_scale.IsNull()) {
      const bfloat16* weight = call.parameters[0].Row<bfloat16>(0);
      SumIntoTable(*context.threads, x.batch, index, grad_scale, layout.table_sums,
                   [&](int64_t item, int64_t row, int64_t first, int64_t count, float* values) {
                     const bfloat16* g = grad.Row<bfloat16>(row, item) + first;
                     const bfloat16* from = x.Row<bfloat16>(row, item) + first;
                     const bfloat16* w = weight + first;
                     const float r = saved[item * x.rows + row];
                     for (int64_t i = 0; i < count; ++i) {
                       const float n = RoundThroughBf16(WidenBf16(from[i]) * r * WidenBf16(w[i]));
                       values[i] = RoundThroughBf16(WidenBf16(g[i]) * n);
                     }
                   });
    }
    if (const Tensor& grad_shift = call.grad_inputs[2]; !grad_shift.IsNull()) {
      SumIntoTable(*context.threads, x.batch, index, grad_shift, layout.table_sums,
                   [&](int64_t item, int64_t row, int64_t first, int64_t count, float* values) {
                     const bfloat16* g = grad.Row<bfloat16>(row, item) + first;
                     for (int64_t i = 0; i < count; ++i) values[i] = WidenBf16(g[i]);
                   });
    }
  }
};

}  // namespace

float ModulatedRmsNormRow(const bfloat16* x, const bfloat16* weight, const bfloat16* scale,
                          const bfloat16* shift, int64_t width, float epsilon, float* scratch,
                          bfloat16* output) {
  const float r = NormaliseRun(x, weight, width, epsilon, scratch, output);
  for (int64_t i = 0; i < width; ++i) {
    const float factor = RoundThroughBf16(1.0f + WidenBf16(scale[i]));
    const float product = RoundThroughBf16(WidenBf16(output[i]) * factor);
    output[i] = RoundToBf16(product + WidenBf16(shift[i]));
  }
  return r;
}

std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<ModulatedRmsNorm>();
}

}  // namespace plumbline::candidate
