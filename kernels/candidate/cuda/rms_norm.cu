// kRmsNorm of the candidate: rms_norm.cuh says shapes, rounding points and orders.
#include "kernels/candidate/cuda/head_rows.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/rms_norm.cuh"
#include "kernels/candidate/cuda/wide_norm.cuh"
#include "kernels/cuda/workspace.h"

namespace plumbline::candidate_cuda {
namespace {

class RmsNorm final : public CandidateOperation {
 public:
  RmsNorm() : CandidateOperation(OpKind::kRmsNorm) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[0].NumElements() / call.parameters[0].width) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    const Tensor& x = call.inputs[0];
    return static_cast<size_t>(RunCount(x.batch * x.rows) * call.parameters[0].width) *
           sizeof(float);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    float* const saved = static_cast<float*>(call.saved);
    const HeadRows heads = {x, weight, saved, call.output, Tensor()};
    if (TakesHeadRows(heads, weight.width, 0)) {
      return RunHeadRows(Stream(context), heads, nullptr, Tensor(), call.attributes, 1.0f);
    }
    if (x.width == weight.width &&
        TakesWideNorm(x.width, cuda::AreAligned(kChunkValues, x, weight, call.output))) {
      return WideNorm(Stream(context), x, nullptr, weight, nullptr, call.attributes.epsilon, saved,
                      call.output);
    }
    const NormLaunch launch(Stream(context), x, weight, nullptr,
                            cuda::AreAligned(kRowVector, x, weight, call.output));
    return launch.Forward(call.attributes.epsilon, saved, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    const Tensor& grad_x = call.grad_inputs[0];
    const Tensor& grad_weight = call.grad_parameters[0];
    const float* const saved = static_cast<const float*>(call.saved);
    const NormLaunch launch(Stream(context), x, weight, nullptr,
                            cuda::AreAligned(kRowVector, x, weight, call.grad_output, grad_x));
    if (!grad_x.IsNull()) {
      const absl::Status done = launch.InputGradient(saved, call.grad_output, grad_x);
      if (!done.ok()) return done;
    }
    if (grad_weight.IsNull()) return absl::OkStatus();
    return launch.WeightGradient(saved, call.grad_output,
                                 cuda::AreAligned(kChunkValues, x, call.grad_output),
                                 reinterpret_cast<float*>(context.workspace.data()), grad_weight);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRmsNorm() { return std::make_shared<RmsNorm>(); }

}  // namespace plumbline::candidate_cuda
