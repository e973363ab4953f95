#include "kernels/candidate/cuda/attention.h"

#include "kernels/candidate/cuda/operations.h"

namespace plumbline::candidate_cuda {
namespace {

class Attention final : public CandidateOperation {
 public:
  Attention() : CandidateOperation(OpKind::kAttention) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    return static_cast<size_t>(q.batch * q.width / call.attributes.head_width * q.rows) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return AttentionBackwardBytes(call);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return AttentionForward(Stream(context), call);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    return AttentionBackward(Stream(context), call,
                             reinterpret_cast<float*>(context.workspace.data()));
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAttention() { return std::make_shared<Attention>(); }

}  // namespace plumbline::candidate_cuda
