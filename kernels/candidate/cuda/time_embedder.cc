// kTimeEmbedder of the candidate, float32 throughout.
//
// Shapes: features (1, T, F), linear_1.weight (1, M, F), linear_1.bias, linear_2.weight (1, N, M),
// linear_2.bias; output (1, T, N). linear_2(SiLU(linear_1(features))).
// Saved for the backward: linear_1's output, float32 (T, M).
// Backward: as linear.h for each layer, SiLU' between them. Order: linear.h.
#include "common/status.h"
#include "kernels/candidate/cuda/linear.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/silu.h"

namespace plumbline::candidate_cuda {
namespace {

// SiLU of linear_1's output; that output where it is not saved, in a backward its gradient; and the
// linear layers' scratch.
struct Layout {
  template <typename Call>
  Layout(const Call& call, bool backward, absl::Span<uint8_t> memory = {})
      : workspace(memory),
        activated(Place(call)),
        hidden_or_gradient(Place(call)),
        first{call.inputs[0], call.parameters[0], call.parameters[1]},
        second{activated, call.parameters[2], call.parameters[3]},
        first_scratch(first, backward, workspace),
        second_scratch(second, backward, workspace) {}

  cuda::Workspace workspace;
  Tensor activated;
  Tensor hidden_or_gradient;
  LinearLayer first, second;
  LinearScratch first_scratch, second_scratch;

 private:
  template <typename Call>
  Tensor Place(const Call& call) {
    const int64_t rows = call.inputs[0].rows;
    const int64_t width = call.parameters[0].rows;
    return Tensor::Dense(workspace.Take<float>(rows * width), DType::kF32, 1, rows, width);
  }
};

class TimeEmbedder final : public CandidateOperation {
 public:
  TimeEmbedder() : CandidateOperation(OpKind::kTimeEmbedder) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return Hidden(call, nullptr).NumBytes();
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Layout(call, false).workspace.bytes();
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Layout(call, true).workspace.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const cudaStream_t stream = Stream(context);
    const Layout layout(call, false, context.workspace);
    const Tensor hidden =
        call.saved != nullptr ? Hidden(call, call.saved) : layout.hidden_or_gradient;
    PLUMBLINE_RETURN_IF_ERROR(layout.first_scratch.Forward(stream, layout.first, hidden));
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    return layout.second_scratch.Forward(stream, layout.second, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const cudaStream_t stream = Stream(context);
    const Layout layout(call, true, context.workspace);
    const Tensor hidden = Hidden(call, const_cast<void*>(call.saved));
    const Tensor& grad_hidden = layout.hidden_or_gradient;
    PLUMBLINE_RETURN_IF_ERROR(Activate(stream, hidden, layout.activated));
    PLUMBLINE_RETURN_IF_ERROR(layout.second_scratch.Backward(
        stream, layout.second, call.grad_output,
        {grad_hidden, call.grad_parameters[2], call.grad_parameters[3]}));
    PLUMBLINE_RETURN_IF_ERROR(ActivationGradient(stream, grad_hidden, hidden, grad_hidden));
    return layout.first_scratch.Backward(
        stream, layout.first, grad_hidden,
        {call.grad_inputs[0], call.grad_parameters[0], call.grad_parameters[1]});
  }

 private:
  // linear_1's output, at `data`.
  template <typename Call>
  static Tensor Hidden(const Call& call, void* data) {
    return Tensor::Dense(data, DType::kF32, 1, call.inputs[0].rows, call.parameters[0].rows);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeTimeEmbedder() { return std::make_shared<TimeEmbedder>(); }

}  // namespace plumbline::candidate_cuda
