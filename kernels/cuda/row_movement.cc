// kScatterRows, kGatherRows and kCast of every CUDA family. No reductions; each value is converted
// once.
//
// kScatterRows: text (batch, Rt, H), video (batch, Rv, H), audio (batch, Ra, H), bfloat16 or
//   float32, and their indices (1, rows, 1) int64. Output (batch, R, H). Backward: each source's
//   gradient is the rows at its indices, cast to its type.
// kGatherRows: x (batch, R, W), indices (1, n, 1) int64, distinct. Output (batch, n, W) of x's
//   type. Backward: zeros, and the gradient's rows at the indices.
// kCast: x (batch, R, W). Output of the same shape and either type. Backward: the cast back.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/cuda_operation.h"
#include "kernels/cuda/move_rows.h"
#include "kernels/cuda/shared_operations.h"

namespace plumbline::cuda {
namespace {

constexpr size_t kSources = 3;

class ScatterRowsOperation final : public CudaOperation {
 public:
  ScatterRowsOperation(absl::string_view implementation, Precision precision)
      : CudaOperation(implementation, precision, OpKind::kScatterRows) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i) {
      const absl::Status scattered =
          ScatterRows(Stream(context), call.inputs[i], call.inputs[kSources + i], call.output);
      if (!scattered.ok()) return scattered;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i) {
      if (call.grad_inputs[i].IsNull()) continue;
      const absl::Status gathered = GatherRows(Stream(context), call.grad_output,
                                               call.inputs[kSources + i], call.grad_inputs[i]);
      if (!gathered.ok()) return gathered;
    }
    return absl::OkStatus();
  }
};

class GatherRowsOperation final : public CudaOperation {
 public:
  GatherRowsOperation(absl::string_view implementation, Precision precision)
      : CudaOperation(implementation, precision, OpKind::kGatherRows) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return GatherRows(Stream(context), call.inputs[0], call.inputs[1], call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad_x = call.grad_inputs[0];
    if (grad_x.IsNull()) return absl::OkStatus();
    const absl::Status cleared = ClearRows(Stream(context), grad_x);
    if (!cleared.ok()) return cleared;
    return ScatterRows(Stream(context), call.grad_output, call.inputs[1], grad_x);
  }
};

class CastOperation final : public CudaOperation {
 public:
  CastOperation(absl::string_view implementation, Precision precision)
      : CudaOperation(implementation, precision, OpKind::kCast) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return ConvertOnCuda(Stream(context), call.inputs[0], call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    return ConvertOnCuda(Stream(context), call.grad_output, call.grad_inputs[0]);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeScatterRows(absl::string_view implementation,
                                                 Precision precision) {
  return std::make_shared<ScatterRowsOperation>(implementation, precision);
}
std::shared_ptr<const Operation> MakeGatherRows(absl::string_view implementation,
                                                Precision precision) {
  return std::make_shared<GatherRowsOperation>(implementation, precision);
}
std::shared_ptr<const Operation> MakeCast(absl::string_view implementation, Precision precision) {
  return std::make_shared<CastOperation>(implementation, precision);
}

}  // namespace plumbline::cuda
