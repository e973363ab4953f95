#include "kernels/candidate/cpu/rope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/cpu/call_check.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::candidate {
namespace {

constexpr int64_t kAxes = 3;
// Rows of the table that one thread fills at a time.
constexpr int64_t kTableRows = 32;

// Rotates the first 2 * half channels by the angle, or for the transpose by its negative
// (`sine_sign` -1: negating a factor before a rounding to nearest negates the product exactly).
inline void RotateHead(const bfloat16* from, int64_t half, const float* cosine, const float* sine,
                       float sine_sign, bfloat16* to) {
  for (int64_t i = 0; i < half; ++i) {
    const float x1 = WidenBf16(from[i]);
    const float x2 = WidenBf16(from[half + i]);
    const float s = sine_sign * sine[i];
    to[i] = RoundToBf16(RoundThroughBf16(x1 * cosine[i]) + RoundThroughBf16(-x2 * s));
    to[half + i] = RoundToBf16(RoundThroughBf16(x2 * cosine[i]) + RoundThroughBf16(x1 * s));
  }
}

void RotateRowBy(const bfloat16* from, int64_t width, const Attributes& attributes,
                 const float* table_row, float sine_sign, bfloat16* to) {
  const int64_t half = kAxes * attributes.rotary_frequencies;
  for (int64_t head = 0; head < width; head += attributes.head_width) {
    RotateHead(from + head, half, table_row, table_row + half, sine_sign, to + head);
    if (from != to) {
      std::copy(from + head + 2 * half, from + head + attributes.head_width, to + head + 2 * half);
    }
  }
}

class Rope final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kRope, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Attributes& attributes = call.attributes;
    return check.Type("x", x, {DType::kBF16})
        .Type("position_ids", call.inputs[1], {DType::kF64})
        .Shape("position_ids", call.inputs[1], 1, x.rows, kAxes)
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .That(attributes.head_width > 0 && x.width % attributes.head_width == 0,
              absl::StrCat("the width ", x.width, " must be a multiple of the head width ",
                           attributes.head_width))
        .That(
            attributes.rotary_frequencies >= 0 &&
                2 * kAxes * attributes.rotary_frequencies <= attributes.head_width,
            absl::StrCat("6 x ", attributes.rotary_frequencies,
                         " rotated channels must fit into the head width ", attributes.head_width))
        .That(attributes.rotary_theta > 0, "rotary_theta must be positive")
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return RotaryTableBytes(call.inputs[0].rows, call.attributes);
  }

  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return RotaryTableBytes(call.inputs[0].rows, call.attributes);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Rotate(context, call.inputs[0], call.inputs[1], call.attributes, 1.0f, call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    Rotate(context, call.grad_output, call.inputs[1], call.attributes, -1.0f, call.grad_inputs[0]);
    return absl::OkStatus();
  }

 private:
  static void Rotate(const ExecutionContext& context, const Tensor& from,
                     const Tensor& position_ids, const Attributes& attributes, float sine_sign,
                     const Tensor& to) {
    float* table = reinterpret_cast<float*>(context.workspace.data());
    FillRotaryTable(*context.threads, position_ids, attributes, table);
    const int64_t table_width = 2 * kAxes * attributes.rotary_frequencies;
    ParallelRows(*context.threads, from.batch, from.rows, [&](int64_t item, int64_t row) {
      RotateRowBy(from.Row<bfloat16>(row, item), from.width, attributes, table + row * table_width,
                  sine_sign, to.Row<bfloat16>(row, item));
    });
  }
};

}  // namespace

size_t RotaryTableBytes(int64_t rows, const Attributes& attributes) {
  return static_cast<size_t>(rows * 2 * kAxes * attributes.rotary_frequencies) * sizeof(float);
}

void FillRotaryTable(ThreadPool& threads, const Tensor& position_ids, const Attributes& attributes,
                     float* table) {
  const int64_t frequencies = attributes.rotary_frequencies;
  const int64_t half = kAxes * frequencies;
  const double log_theta = Log(static_cast<double>(attributes.rotary_theta));
  threads.ParallelFor(0, position_ids.rows, kTableRows, [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < frequencies; ++j) {
      const float exponent = static_cast<float>(2 * j) / static_cast<float>(2 * frequencies);
      const float power = static_cast<float>(Exp(static_cast<double>(exponent) * log_theta));
      const float inverse_frequency = 1.0f / power;
      for (int64_t row = begin; row < end; ++row) {
        const double* position = position_ids.Row<double>(row);
        float* cosine = table + row * 2 * half + j;
        for (int64_t axis = 0; axis < kAxes; ++axis) {
          const float angle = static_cast<float>(position[axis]) * inverse_frequency;
          cosine[axis * frequencies] = RoundThroughBf16(Cos(angle));
          cosine[half + axis * frequencies] = RoundThroughBf16(Sin(angle));
        }
      }
    }
  });
}

void RotateRow(const bfloat16* from, int64_t width, const Attributes& attributes,
               const float* table_row, bfloat16* to) {
  RotateRowBy(from, width, attributes, table_row, 1.0f, to);
}

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::candidate
