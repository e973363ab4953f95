#include "kernels/candidate/cuda/fused.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/unfused_sequence.h"
#include "kernels/candidate/cuda/wide_norm.cuh"

namespace plumbline::candidate_cuda {
namespace {

class FusedResidualNorm final : public FusedOperation {
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
    const ForwardCall& residual = calls[0];
    const ForwardCall& norm = calls[1];
    const Tensor& x = residual.inputs[0];
    const Tensor& weight = norm.parameters[0];
    if (!TakesWideNorm(x.width,
                       cuda::AreAligned(kChunkValues, x, residual.inputs[1], residual.inputs[2],
                                        residual.output, norm.inputs[1], norm.inputs[2], weight,
                                        norm.output))) {
      return unfused_.Forward(context, calls);
    }
    const GatedBranch branch = {
        View<const bf16>(residual.inputs[1]), View<const bf16>(residual.inputs[2]),
        View<const int64_t>(residual.inputs[3]), View<bf16>(residual.output)};
    const Modulation modulation = {View<const bf16>(norm.inputs[1]),
                                   View<const bf16>(norm.inputs[2]),
                                   View<const int64_t>(norm.inputs[3])};
    return WideNorm(static_cast<cudaStream_t>(context.stream), x, &branch, weight, &modulation,
                    norm.attributes.epsilon, static_cast<float*>(norm.saved), norm.output);
  }

 private:
  const UnfusedSequence unfused_{
      "candidate/residual_norm", {MakeGatedResidual(), MakeModulatedRmsNorm()}, {-1, 0}};
};

}  // namespace

std::shared_ptr<const FusedOperation> MakeFusedResidualNorm() {
  return std::make_shared<FusedResidualNorm>();
}

}  // namespace plumbline::candidate_cuda
