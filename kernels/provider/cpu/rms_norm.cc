// kRmsNorm of the provider.
//
//   x(R, W) bfloat16, weight(1, G) bfloat16, W a multiple of G -> (R, W)
//   forward   round(w (r x)) for each run of G channels, everything inside in float32
//   backward  dx: rms_norm.h; dw = round(sum of dy x r over all rows, items and runs)
// Reductions: over channels as in row_reductions.h; dw a float32 sum in row order, batch item after
// item, the runs of a row in order. Saved for the backward: r of every run.
#include "kernels/provider/cpu/rms_norm.h"

#include <array>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/values.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 8;
constexpr int64_t kColumnRun = 32;

class RmsNorm : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kRmsNorm, call, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    return check.Type("x", x, {DType::kBF16})
        .Type("weight", weight, {DType::kBF16})
        .Shape("weight", weight, 1, 1, CallCheck::kAny)
        .That(weight.width > 0 && x.width % weight.width == 0,
              "the width of x must be a multiple of the weight's")
        .Type("output", call.output, {DType::kBF16})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    return static_cast<size_t>(x.NumElements() / call.parameters[0].width) * sizeof(float);
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
    const int64_t group = call.parameters[0].width;
    const int64_t groups = x.width / group;
    const bfloat16* const weight = call.parameters[0].Row<bfloat16>(0);
    float* const saved = static_cast<float*>(call.saved);
    const auto run = [&](int64_t first_row, int64_t end_row, int slot) {
      float* const values = SlotScratch(context, slot, x.width);
      for (int64_t row = first_row; row < end_row; ++row) {
        LoadFlatRow(x, row, 0, x.width, DType::kBF16, values);
        bfloat16* const to = FlatRow<bfloat16>(call.output, row);
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t first = g * group;
          const float inverse_rms = InverseRms(values + first, group, call.attributes.epsilon);
          for (int64_t i = 0; i < group; ++i) {
            to[first + i] =
                RoundToBf16(NormalisedValue(values[first + i], WidenBf16(weight[i]), inverse_rms));
          }
          if (saved != nullptr) saved[row * groups + g] = inverse_rms;
        }
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowRun, run);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull()) InputGradient(context, call);
    if (!call.grad_parameters[0].IsNull()) WeightGradient(context, call);
    return absl::OkStatus();
  }

 private:
  static void InputGradient(const ExecutionContext& context, const BackwardCall& call) {
    const Tensor& x = call.inputs[0];
    const int64_t group = call.parameters[0].width;
    const int64_t groups = x.width / group;
    const bfloat16* const weight = call.parameters[0].Row<bfloat16>(0);
    const float* const saved = static_cast<const float*>(call.saved);
    const auto run = [&](int64_t first_row, int64_t end_row, int slot) {
      float* const values = SlotScratch(context, slot, 2 * x.width);
      float* const weighted = values + x.width;
      for (int64_t row = first_row; row < end_row; ++row) {
        LoadFlatRow(x, row, 0, x.width, DType::kBF16, values);
        LoadFlatRow(call.grad_output, row, 0, x.width, DType::kBF16, weighted);
        bfloat16* const grad_x = FlatRow<bfloat16>(call.grad_inputs[0], row);
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t first = g * group;
          for (int64_t i = 0; i < group; ++i) weighted[first + i] *= WidenBf16(weight[i]);
          RmsNormInputGradient(values + first, weighted + first, saved[row * groups + g], group,
                               grad_x + first);
        }
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowRun, run);
  }

  static void WeightGradient(const ExecutionContext& context, const BackwardCall& call) {
    const Tensor& x = call.inputs[0];
    const int64_t group = call.parameters[0].width;
    const int64_t groups = x.width / group;
    const float* const saved = static_cast<const float*>(call.saved);
    const auto run = [&](int64_t first, int64_t end) {
      std::array<float, kColumnRun> sums = {};
      for (int64_t row = 0; row < x.batch * x.rows; ++row) {
        for (int64_t g = 0; g < groups; ++g) {
          const bfloat16* const values = FlatRow<bfloat16>(x, row) + g * group + first;
          const bfloat16* const grad = FlatRow<bfloat16>(call.grad_output, row) + g * group + first;
          const float inverse_rms = saved[row * groups + g];
          for (int64_t i = 0; i < end - first; ++i)
            sums[i] += WidenBf16(grad[i]) * WidenBf16(values[i]) * inverse_rms;
        }
      }
      StoreFlatRow(sums.data(), call.grad_parameters[0], 0, first, end - first);
    };
    context.threads->ParallelFor(0, group, kColumnRun, run);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRmsNorm() { return std::make_shared<RmsNorm>(); }

}  // namespace plumbline::provider
