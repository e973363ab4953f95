#include "kernels/candidate/cpu/attention.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/call_check.h"

namespace plumbline::candidate {
namespace {

class Attention final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kAttention, call, 3, 0);
    if (!check.ok()) return check.status();
    const Tensor& q = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    return check.Type("q", q, {DType::kBF16})
        .Type("k", call.inputs[1], {DType::kBF16})
        .Shape("k", call.inputs[1], q.batch, q.rows, q.width)
        .Type("v", call.inputs[2], {DType::kBF16})
        .Shape("v", call.inputs[2], q.batch, q.rows, q.width)
        .Type("the output", call.output, {DType::kBF16})
        .Shape("the output", call.output, q.batch, q.rows, q.width)
        .That(head_width > 0 && q.width % head_width == 0,
              absl::StrCat("the width ", q.width, " must be a multiple of the head width ",
                           head_width))
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    return static_cast<size_t>(2 * q.batch * q.width / call.attributes.head_width * q.rows) *
           sizeof(float);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return AttentionForwardBytes(call, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return AttentionBackwardBytes(call, context);
  }
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    AttentionForward(context, call);
    return absl::OkStatus();
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    AttentionBackward(context, call);
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAttention() { return std::make_shared<Attention>(); }

}  // namespace plumbline::candidate
