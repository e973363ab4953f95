#include "kernels/candidate/cuda/fused.h"
#include "kernels/candidate/cuda/head_rows.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/unfused_sequence.h"

namespace plumbline::candidate_cuda {
namespace {

// Nodes: the norm of q, that of k, the rotation of q, that of k.
class FusedNormRope final : public FusedOperation {
 public:
  absl::Status Check(absl::Span<const ForwardCall> calls) const override {
    return unfused_.Check(calls);
  }

  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                        const ExecutionContext& context) const override {
    return unfused_.WorkspaceBytes(calls, context);
  }

  absl::Status Forward(const ExecutionContext& context,
                       absl::Span<const ForwardCall> calls) const override {
    const Attributes& rotation = calls[2].attributes;
    const HeadRows q = HeadsOf(calls[0], calls[2]);
    const HeadRows k = HeadsOf(calls[1], calls[3]);
    if (!Takes(q, rotation) || !Takes(k, rotation) || !AreAlike(calls)) {
      return unfused_.Forward(context, calls);
    }
    Attributes attributes = rotation;
    attributes.epsilon = calls[0].attributes.epsilon;
    return RunHeadRows(static_cast<cudaStream_t>(context.stream), q, &k, calls[2].inputs[1],
                       attributes, 1.0f);
  }

 private:
  static HeadRows HeadsOf(const ForwardCall& norm, const ForwardCall& rope) {
    return {norm.inputs[0], norm.parameters[0], static_cast<float*>(norm.saved), norm.output,
            rope.output};
  }

  static bool Takes(const HeadRows& heads, const Attributes& rotation) {
    return heads.weight.width == rotation.head_width &&
           TakesHeadRows(heads, rotation.head_width, rotation.rotary_frequencies);
  }

  // Whether one kernel's arguments do for q and k.
  static bool AreAlike(absl::Span<const ForwardCall> calls) {
    const Tensor& q = calls[0].inputs[0];
    const Tensor& k = calls[1].inputs[0];
    const Tensor& q_positions = calls[2].inputs[1];
    const Tensor& k_positions = calls[3].inputs[1];
    const Attributes& q_rotation = calls[2].attributes;
    const Attributes& k_rotation = calls[3].attributes;
    return q.batch == k.batch && q.rows == k.rows && q.width == k.width &&
           calls[0].attributes.epsilon == calls[1].attributes.epsilon &&
           q_positions.data == k_positions.data &&
           q_positions.row_stride == k_positions.row_stride &&
           q_rotation.head_width == k_rotation.head_width &&
           q_rotation.rotary_frequencies == k_rotation.rotary_frequencies &&
           q_rotation.rotary_theta == k_rotation.rotary_theta;
  }

  const UnfusedSequence unfused_{"candidate/qk_norm_rope",
                                 {MakeRmsNorm(), MakeRmsNorm(), MakeRope(), MakeRope()},
                                 {-1, -1, 0, 1}};
};

}  // namespace

std::shared_ptr<const FusedOperation> MakeFusedNormRope() {
  return std::make_shared<FusedNormRope>();
}

}  // namespace plumbline::candidate_cuda
