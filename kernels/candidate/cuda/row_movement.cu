// kScatterRows, kGatherRows and kCast of the candidate. No reductions; each value is converted
// once.
//
// kScatterRows: text (batch, Rt, H), video (batch, Rv, H), audio (batch, Ra, H), bfloat16 or
//   float32, and their indices (1, rows, 1) int64. Output (batch, R, H). Backward: each source's
//   gradient is the rows at its indices, cast to its type.
// kGatherRows: x (batch, R, W), indices (1, n, 1) int64, distinct. Output (batch, n, W) of x's
//   type. Backward: zeros, and the gradient's rows at the indices.
// kCast: x (batch, R, W). Output of the same shape and either type. Backward: the cast back.
#include "kernels/candidate/cuda/operations.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/move_rows.h"

namespace plumbline::candidate_cuda {
namespace {

constexpr size_t kSources = 3;

class ScatterRows final : public CandidateOperation {
 public:
  ScatterRows() : CandidateOperation(OpKind::kScatterRows) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i) {
      const absl::Status scattered = cuda::ScatterRows(Stream(context), call.inputs[i],
                                                       call.inputs[kSources + i], call.output);
      if (!scattered.ok()) return scattered;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i) {
      if (call.grad_inputs[i].IsNull()) continue;
      const absl::Status gathered = cuda::GatherRows(
          Stream(context), call.grad_output, call.inputs[kSources + i], call.grad_inputs[i]);
      if (!gathered.ok()) return gathered;
    }
    return absl::OkStatus();
  }
};

class GatherRows final : public CandidateOperation {
 public:
  GatherRows() : CandidateOperation(OpKind::kGatherRows) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return cuda::GatherRows(Stream(context), call.inputs[0], call.inputs[1], call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad_x = call.grad_inputs[0];
    if (grad_x.IsNull()) return absl::OkStatus();
    const absl::Status cleared = cuda::ClearRows(Stream(context), grad_x);
    if (!cleared.ok()) return cleared;
    return cuda::ScatterRows(Stream(context), call.grad_output, call.inputs[1], grad_x);
  }
};

class Cast final : public CandidateOperation {
 public:
  Cast() : CandidateOperation(OpKind::kCast) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return ConvertOnCuda(Stream(context), call.inputs[0], call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    return ConvertOnCuda(Stream(context), call.grad_output, call.grad_inputs[0]);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeScatterRows() { return std::make_shared<ScatterRows>(); }
std::shared_ptr<const Operation> MakeGatherRows() { return std::make_shared<GatherRows>(); }
std::shared_ptr<const Operation> MakeCast() { return std::make_shared<Cast>(); }

}  // namespace plumbline::candidate_cuda
