#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/fused.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/candidate/cpu/residual.h"
#include "kernels/candidate/cpu/rms_norm.h"
#include "kernels/candidate/cpu/workspace_layout.h"

namespace plumbline::candidate {
namespace {

// Each worker's scratch: a widened row, and the residual's row where its output is null.
struct Layout {
  Layout(int64_t width, const ExecutionContext& context) {
    const int64_t workers = context.threads->num_threads();
    WorkspaceLayout layout(context.workspace.data());
    widened = layout.Floats(workers * width);
    rows = reinterpret_cast<bfloat16*>(
        layout.Bytes(static_cast<size_t>(workers * width) * sizeof(bfloat16)));
    bytes = layout.bytes();
  }

  float* widened;
  bfloat16* rows;
  size_t bytes;
};

class FusedResidualNorm final : public FusedOperation {
 public:
  absl::Status Check(absl::Span<const ForwardCall> calls) const override {
    if (calls.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("candidate/residual_norm: covers 2 nodes, got ", calls.size()));
    }
    if (absl::Status status = residual_->Check(calls[0]); !status.ok()) return status;
    return norm_->Check(calls[1]);
  }

  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                        const ExecutionContext& context) const override {
    return Layout(calls[0].inputs[0].width, context).bytes;
  }

  absl::Status Forward(const ExecutionContext& context,
                       absl::Span<const ForwardCall> calls) const override {
    const ForwardCall& residual = calls[0];
    const ForwardCall& norm = calls[1];
    const Tensor& x = residual.inputs[0];
    const int64_t width = x.width;
    const Layout layout(width, context);
    float* saved = static_cast<float*>(norm.saved);
    const auto body = [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t item = i / x.rows;
        const int64_t row = i % x.rows;
        bfloat16* sum = residual.output.IsNull() ? layout.rows + worker * width
                                                 : residual.output.Row<bfloat16>(row, item);
        GatedResidualRow(x.Row<bfloat16>(row, item), residual.inputs[1].Row<bfloat16>(row, item),
                         residual.inputs[2].Row<bfloat16>(*residual.inputs[3].Row<int64_t>(row)),
                         width, sum);
        const int64_t table_row = *norm.inputs[3].Row<int64_t>(row);
        const float r = ModulatedRmsNormRow(
            sum, norm.parameters[0].Row<bfloat16>(0), norm.inputs[1].Row<bfloat16>(table_row),
            norm.inputs[2].Row<bfloat16>(table_row), width, norm.attributes.epsilon,
            layout.widened + worker * width, norm.output.Row<bfloat16>(row, item));
        if (saved != nullptr) saved[i] = r;
      }
    };
    context.threads->ParallelForWithSlot(0, x.batch * x.rows, kRowGrain, body);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Operation> residual_ = MakeGatedResidual();
  const std::shared_ptr<const Operation> norm_ = MakeModulatedRmsNorm();
};

}  // namespace

std::shared_ptr<const FusedOperation> MakeFusedResidualNorm() {
  return std::make_shared<FusedResidualNorm>();
}

}  // namespace plumbline::candidate
