#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/fused.h"
#include "kernels/candidate/cpu/linear.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/swiglu.h"
#include "kernels/candidate/cpu/workspace_layout.h"

namespace plumbline::candidate {
namespace {

// Rows whose gate_up is kept at once where nobody else reads it: several tiles of the product, so
// that it stays as efficient as over all rows.
constexpr int64_t kPanelRows = 384;

// The panel of gate_up, and the product's scratch, given as a context.
struct Layout {
  Layout(const ForwardCall& linear_call, const ExecutionContext& context) : linear(context) {
    const Tensor& x = linear_call.inputs[0];
    const Tensor& weight = linear_call.parameters[0];
    WorkspaceLayout layout(context.workspace.data());
    panel = Tensor::Dense(nullptr, weight.dtype, 1, std::min(kPanelRows, x.rows), weight.rows);
    if (linear_call.output.IsNull()) panel.data = layout.Bytes(panel.NumBytes());
    linear.workspace = {};
    const size_t linear_bytes = LinearForwardBytes({x, weight, Tensor()}, linear);
    linear.workspace = absl::MakeSpan(layout.Bytes(linear_bytes), linear_bytes);
    bytes = layout.bytes();
  }

  Tensor panel;
  ExecutionContext linear;
  size_t bytes;
};

// Rows [first, first + count) of one batch item.
Tensor RowsOf(const Tensor& tensor, int64_t item, int64_t first, int64_t count) {
  Tensor rows = tensor;
  rows.batch = 1;
  rows.rows = count;
  const int64_t offset = item * tensor.batch_stride + first * tensor.row_stride;
  rows.data =
      static_cast<char*>(tensor.data) + offset * static_cast<int64_t>(DTypeSize(tensor.dtype));
  return rows;
}

class FusedGateUpSwiGlu final : public FusedOperation {
 public:
  absl::Status Check(absl::Span<const ForwardCall> calls) const override {
    if (calls.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("candidate/gate_up_swiglu: covers 2 nodes, got ", calls.size()));
    }
    if (absl::Status status = linear_->Check(calls[0]); !status.ok()) return status;
    if (calls[0].parameters.size() > 1) {
      return absl::InvalidArgumentError("candidate/gate_up_swiglu: the linear layer has a bias");
    }
    return swiglu_->Check(calls[1]);
  }

  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                        const ExecutionContext& context) const override {
    return Layout(calls[0], context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context,
                       absl::Span<const ForwardCall> calls) const override {
    const ForwardCall& linear = calls[0];
    const Tensor& x = linear.inputs[0];
    const Tensor& output = calls[1].output;
    const Layout layout(linear, context);
    for (int64_t item = 0; item < x.batch; ++item) {
      for (int64_t first = 0; first < x.rows; first += kPanelRows) {
        const int64_t rows = std::min(kPanelRows, x.rows - first);
        const Tensor gate_up = linear.output.IsNull() ? RowsOf(layout.panel, 0, 0, rows)
                                                      : RowsOf(linear.output, item, first, rows);
        LinearForward(layout.linear, {RowsOf(x, item, first, rows), linear.parameters[0], Tensor()},
                      gate_up);
        ParallelRows(*context.threads, 1, rows, [&](int64_t, int64_t row) {
          SwiGluRow(gate_up.Row<bfloat16>(row), output.width,
                    output.Row<bfloat16>(first + row, item));
        });
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Operation> linear_ = MakeLinear();
  const std::shared_ptr<const Operation> swiglu_ = MakeSwiGlu();
};

}  // namespace

std::shared_ptr<const FusedOperation> MakeFusedGateUpSwiGlu() {
  return std::make_shared<FusedGateUpSwiGlu>();
}

}  // namespace plumbline::candidate
