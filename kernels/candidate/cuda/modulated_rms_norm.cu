// kModulatedRmsNorm of the candidate: rms_norm.cuh says shapes, rounding points and orders.
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/rms_norm.cuh"
#include "kernels/candidate/cuda/table_gradient.cuh"
#include "kernels/candidate/cuda/wide_norm.cuh"
#include "kernels/cuda/workspace.h"

namespace plumbline::candidate_cuda {
namespace {

enum Input { kX, kScale, kShift, kIndex };

struct ShiftContribution {
  View<const bf16> grad;

  __device__ float operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    return cuda::Widen(grad.Row(row, item)[column]);
  }
  __device__ ContributionInputs Read(int64_t item, int64_t row, int64_t column) const {
    return {LoadChunk(grad.Row(row, item) + column), {}, 0};
  }
  __device__ void Compute(const ContributionInputs& inputs, int64_t,
                          float (&values)[kChunkValues]) const {
    WidenChunk(inputs.first, values);
  }
};

struct ScaleContribution {
  View<const bf16> grad;
  View<const bf16> x;
  const bf16* weight;
  const float* saved;

  __device__ float operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    const float r = saved[item * x.rows + row];
    const float n =
        RoundThroughBf16(cuda::Widen(x.Row(row, item)[column]) * r * cuda::Widen(weight[column]));
    return RoundThroughBf16(cuda::Widen(grad.Row(row, item)[column]) * n);
  }
  __device__ ContributionInputs Read(int64_t item, int64_t row, int64_t column) const {
    return {LoadChunk(grad.Row(row, item) + column), LoadChunk(x.Row(row, item) + column),
            saved[item * x.rows + row]};
  }
  __device__ void Compute(const ContributionInputs& inputs, int64_t column,
                          float (&values)[kChunkValues]) const {
    float inputs_of_norm[kChunkValues], weights[kChunkValues];
    WidenChunk(inputs.first, values);
    WidenChunk(inputs.second, inputs_of_norm);
    WidenChunk(LoadChunk(weight + column), weights);
#pragma unroll
    for (int i = 0; i < kChunkValues; ++i) {
      const float n = RoundThroughBf16(inputs_of_norm[i] * inputs.row_value * weights[i]);
      values[i] = RoundThroughBf16(values[i] * n);
    }
  }
};

// The weight's run sums, and the sums of one table at a time.
struct Layout {
  explicit Layout(const BackwardCall& call, absl::Span<uint8_t> memory = {}) {
    const Tensor& x = call.inputs[kX];
    cuda::Workspace workspace(memory);
    run_sums = workspace.Take<float>(RunCount(x.batch * x.rows) * x.width);
    table_sums = workspace.Take<float>(call.inputs[kScale].rows * x.width);
    bytes = workspace.bytes();
  }

  float* run_sums;
  float* table_sums;
  size_t bytes;
};

class ModulatedRmsNorm final : public CandidateOperation {
 public:
  ModulatedRmsNorm() : CandidateOperation(OpKind::kModulatedRmsNorm) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[kX].batch * call.inputs[kX].rows) * sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Layout(call).bytes;
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Modulation modulation = ModulationOf(call.inputs);
    if (TakesWideNorm(call.inputs[kX].width,
                      cuda::AreAligned(kChunkValues, call.inputs[kX], call.inputs[kScale],
                                       call.inputs[kShift], call.parameters[0], call.output))) {
      return WideNorm(Stream(context), call.inputs[kX], nullptr, call.parameters[0], &modulation,
                      call.attributes.epsilon, static_cast<float*>(call.saved), call.output);
    }
    const NormLaunch launch(Stream(context), call.inputs[kX], call.parameters[0], &modulation,
                            cuda::AreAligned(kRowVector, call.inputs[kX], call.inputs[kScale],
                                             call.inputs[kShift], call.parameters[0], call.output));
    return launch.Forward(call.attributes.epsilon, static_cast<float*>(call.saved), call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& x = call.inputs[kX];
    const Tensor& grad = call.grad_output;
    const float* const saved = static_cast<const float*>(call.saved);
    const Layout layout(call, context.workspace);
    const Modulation modulation = ModulationOf(call.inputs);
    const NormLaunch launch(Stream(context), x, call.parameters[0], &modulation,
                            cuda::AreAligned(kRowVector, x, call.inputs[kScale], call.parameters[0],
                                             grad, call.grad_inputs[kX]));
    absl::Status done = absl::OkStatus();
    if (!call.grad_inputs[kX].IsNull()) {
      done.Update(launch.InputGradient(saved, grad, call.grad_inputs[kX]));
    }
    if (!call.grad_parameters[0].IsNull()) {
      done.Update(launch.WeightGradient(
          saved, grad, cuda::AreAligned(kChunkValues, x, call.inputs[kScale], grad),
          layout.run_sums, call.grad_parameters[0]));
    }
    if (!call.grad_inputs[kScale].IsNull()) {
      const ScaleContribution contribution = {View<const bf16>(grad), View<const bf16>(x),
                                              static_cast<const bf16*>(call.parameters[0].data),
                                              saved};
      done.Update(SumIntoTable(Stream(context), x.batch, call.inputs[kIndex],
                               call.grad_inputs[kScale], layout.table_sums, contribution,
                               cuda::AreAligned(kChunkValues, grad, x, call.parameters[0])));
    }
    if (!call.grad_inputs[kShift].IsNull()) {
      done.Update(SumIntoTable(Stream(context), x.batch, call.inputs[kIndex],
                               call.grad_inputs[kShift], layout.table_sums,
                               ShiftContribution{View<const bf16>(grad)},
                               cuda::AreAligned(kChunkValues, grad)));
    }
    return done;
  }

 private:
  static Modulation ModulationOf(absl::Span<const Tensor> inputs) {
    return {View<const bf16>(inputs[kScale]), View<const bf16>(inputs[kShift]),
            View<const int64_t>(inputs[kIndex])};
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<ModulatedRmsNorm>();
}

}  // namespace plumbline::candidate_cuda
