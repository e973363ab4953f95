#include "kernels/candidate/cuda/attention.h"

#include <algorithm>

#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/sm90_attention.h"

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
    return std::max(AttentionBackwardBytes(call), Sm90AttentionBackwardBytes(call));
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return TakesSm90AttentionForward(call) ? Sm90AttentionForward(Stream(context), call)
                                           : AttentionForward(Stream(context), call);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    float* const workspace = reinterpret_cast<float*>(context.workspace.data());
    return TakesSm90AttentionBackward(call)
               ? Sm90AttentionBackward(Stream(context), call, workspace)
               : AttentionBackward(Stream(context), call, workspace);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAttention() { return std::make_shared<Attention>(); }

}  // namespace plumbline::candidate_cuda
