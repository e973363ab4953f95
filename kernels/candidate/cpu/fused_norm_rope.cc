#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/fused.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/rms_norm.h"
#include "kernels/candidate/cpu/rope.h"
#include "kernels/candidate/cpu/workspace_layout.h"

namespace plumbline::candidate {
namespace {

// Positions of the nodes among the calls.
constexpr size_t kNorms[] = {0, 1};
constexpr size_t kRopes[] = {2, 3};

// The rotary table, and each worker's scratch: a widened head, and the normalised row where a
// norm's output is null.
struct Layout {
  Layout(absl::Span<const ForwardCall> calls, const ExecutionContext& context) {
    const int64_t workers = context.threads->num_threads();
    row_width = head_width = 0;
    size_t table_bytes = 0;
    for (int side = 0; side < 2; ++side) {
      const ForwardCall& norm = calls[kNorms[side]];
      row_width = std::max(row_width, norm.inputs[0].width);
      head_width = std::max(head_width, norm.parameters[0].width);
      table_bytes = std::max(table_bytes,
                             RotaryTableBytes(norm.inputs[0].rows, calls[kRopes[side]].attributes));
    }
    WorkspaceLayout layout(context.workspace.data());
    table = reinterpret_cast<float*>(layout.Bytes(table_bytes));
    widened = layout.Floats(workers * head_width);
    rows = reinterpret_cast<bfloat16*>(
        layout.Bytes(static_cast<size_t>(workers * row_width) * sizeof(bfloat16)));
    bytes = layout.bytes();
  }

  int64_t row_width, head_width;
  float* table;
  float* widened;
  bfloat16* rows;
  size_t bytes;
};

class FusedNormRope final : public FusedOperation {
 public:
  absl::Status Check(absl::Span<const ForwardCall> calls) const override {
    if (calls.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("candidate/qk_norm_rope: covers 4 nodes, got ", calls.size()));
    }
    for (int side = 0; side < 2; ++side) {
      if (absl::Status status = norm_->Check(calls[kNorms[side]]); !status.ok()) return status;
      if (absl::Status status = rope_->Check(calls[kRopes[side]]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                        const ExecutionContext& context) const override {
    return Layout(calls, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context,
                       absl::Span<const ForwardCall> calls) const override {
    const Layout layout(calls, context);
    for (int side = 0; side < 2; ++side) {
      const ForwardCall& rope = calls[kRopes[side]];
      if (side == 0 || !SameTable(rope, calls[kRopes[0]])) {
        FillRotaryTable(*context.threads, rope.inputs[1], rope.attributes, layout.table);
      }
      NormAndRotate(context, calls[kNorms[side]], rope, layout);
    }
    return absl::OkStatus();
  }

 private:
  static bool SameTable(const ForwardCall& a, const ForwardCall& b) {
    return a.inputs[1].data == b.inputs[1].data && a.inputs[1].rows == b.inputs[1].rows &&
           a.inputs[1].row_stride == b.inputs[1].row_stride &&
           a.attributes.rotary_frequencies == b.attributes.rotary_frequencies &&
           a.attributes.rotary_theta == b.attributes.rotary_theta;
  }

  static void NormAndRotate(const ExecutionContext& context, const ForwardCall& norm,
                            const ForwardCall& rope, const Layout& layout) {
    const Tensor& x = norm.inputs[0];
    const int64_t group = norm.parameters[0].width;
    const bfloat16* weight = norm.parameters[0].Row<bfloat16>(0);
    float* saved = static_cast<float*>(norm.saved);
    const int64_t table_width =
        static_cast<int64_t>(RotaryTableBytes(1, rope.attributes) / sizeof(float));
    const auto body = [&](int64_t first, int64_t last, int worker) {
      float* widened = layout.widened + worker * layout.head_width;
      for (int64_t i = first; i < last; ++i) {
        const int64_t item = i / x.rows;
        const int64_t row = i % x.rows;
        const bfloat16* from = x.Row<bfloat16>(row, item);
        bfloat16* normalised = norm.output.IsNull() ? layout.rows + worker * layout.row_width
                                                    : norm.output.Row<bfloat16>(row, item);
        for (int64_t column = 0; column < x.width; column += group) {
          const float r = NormaliseRun(from + column, weight, group, norm.attributes.epsilon,
                                       widened, normalised + column);
          if (saved != nullptr) saved[(i * x.width + column) / group] = r;
        }
        RotateRow(normalised, x.width, rope.attributes, layout.table + row * table_width,
                  rope.output.Row<bfloat16>(row, item));
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowGrain, body);
  }

  const std::shared_ptr<const Operation> norm_ = MakeRmsNorm();
  const std::shared_ptr<const Operation> rope_ = MakeRope();
};

}  // namespace

std::shared_ptr<const FusedOperation> MakeFusedNormRope() {
  return std::make_shared<FusedNormRope>();
}

}  // namespace plumbline::candidate
