// kRmsNorm and kModulatedRmsNorm of the provider.
//
//   x (batch, R, W) bfloat16, weight (1, 1, G) bfloat16, W a multiple of G: each run of G channels
//   is a norm of its own. Modulated, with G = W: scale, shift (1, table rows, W) bfloat16, index
//   (1, R, 1) int64.
//   forward   r = rsqrt(sum(x^2) / G + epsilon); n = round(w (r x)), all inside in float32;
//   modulated
//             m = round(1 + scale[index]); round(round(n m) + shift[index])
//   backward  of g: dn = g, modulated round(g m); s = sum of dn w x r;
//             dx = round((G w dn - x r s) (1 / G) r); dw = round(sum of dn x r); dshift[index] +=
//             g; dscale[index] += round(g n)
// Reductions: over channels that of kernels/cuda/row_sum.cuh, PyTorch's; dw
// norm_weight_gradient.cuh; the tables table_gradient.cuh. Products are contracted as nvcc
// contracts PyTorch's expressions. Saved for the backward: r of every run.
#include "kernels/cuda/row_sum.cuh"
#include "kernels/provider/cuda/norm_weight_gradient.cuh"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/table_gradient.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::kRowVector;
using cuda::RoundThroughBf16;
using cuda::RowTeam;
using cuda::View;
using cuda::Widen;

enum Input { kX, kScale, kShift, kIndex };

constexpr int kThreads = cuda::kRowWarps * cuda::kWarpSize;

// The inputs of either operation; of kRmsNorm the tables are null.
struct Norm {
  View<const bf16> x;
  const bf16* weight;
  View<const bf16> scale;
  View<const bf16> shift;
  View<const int64_t> index;
  bool modulated;
  int64_t runs;      // of a row
  int64_t all_runs;  // of all rows and items
  int size;          // G

  template <typename Call>
  explicit Norm(const Call& call)
      : x(call.inputs[kX]),
        weight(static_cast<const bf16*>(call.parameters[0].data)),
        scale(Table(call, kScale)),
        shift(Table(call, kShift)),
        index(Table(call, kIndex)),
        modulated(call.inputs.size() > 1),
        runs(call.inputs[kX].width / call.parameters[0].width),
        all_runs(call.inputs[kX].NumElements() / call.parameters[0].width),
        size(static_cast<int>(call.parameters[0].width)) {}

  // round(1 + scale) of a row; 1 where there is no table.
  __device__ float Multiplier(int64_t row, int64_t column) const {
    return modulated ? RoundThroughBf16(1.0f + Widen(scale.Row(*index.Row(row))[column])) : 1.0f;
  }
  // The gradient of n.
  __device__ float NormalisedGradient(const bf16* grad, int64_t row, int64_t column) const {
    const float g = Widen(grad[column]);
    return modulated ? RoundThroughBf16(g * Multiplier(row, column)) : g;
  }

 private:
  template <typename Call>
  static Tensor Table(const Call& call, Input input) {
    return call.inputs.size() > 1 ? call.inputs[input] : Tensor();
  }
};

// One run of channels: where it is, and who it belongs to.
struct Place {
  int64_t flat_row;
  int64_t row;
  int64_t column;

  __device__ Place(const Norm& norm, int64_t run)
      : flat_row(run / norm.runs),
        row(flat_row % norm.x.rows),
        column(run % norm.runs * norm.size) {}
};

template <int kWarps>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(Norm norm, float epsilon, float* saved, View<bf16> output) {
  using Team = RowTeam<kWarps>;
  __shared__ float shared[cuda::kRowWarps];
  const int64_t run = int64_t{blockIdx.x} * Team::kTeamsInBlock + Team::Team();
  const bool idle = run >= norm.all_runs;
  const Place place(norm, idle ? 0 : run);
  const bf16* const x = norm.x.FlatRow(place.flat_row) + place.column;
  float sum = 0;
  Team::ForEachRun(norm.size, [&](int first, int count) {
    float values[kRowVector];
    cuda::LoadRowRun<false>(x + first, count, values);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) sum = __fmaf_rn(values[i], values[i], sum);
  });
  const float mean_square = Team::Fold(sum, shared) / static_cast<float>(norm.size);
  if (idle) return;
  const float r = rsqrtf(mean_square + epsilon);
  if (saved != nullptr && Team::Thread() == 0) saved[run] = r;
  bf16* const to = output.FlatRow(place.flat_row) + place.column;
  for (int i = Team::Thread(); i < norm.size; i += Team::kThreads) {
    float value = Widen(norm.weight[i]) * (r * Widen(x[i]));
    if (norm.modulated) {
      value = RoundThroughBf16(RoundThroughBf16(value) * norm.Multiplier(place.row, i)) +
              Widen(norm.shift.Row(*norm.index.Row(place.row))[i]);
    }
    to[i] = cuda::RoundToBf16(value);
  }
}

template <int kWarps>
__global__ void __launch_bounds__(kThreads)
    InputGradientKernel(Norm norm, const float* saved, View<const bf16> grad, View<bf16> grad_x) {
  using Team = RowTeam<kWarps>;
  __shared__ float shared[cuda::kRowWarps];
  const int64_t run = int64_t{blockIdx.x} * Team::kTeamsInBlock + Team::Team();
  const bool idle = run >= norm.all_runs;
  const Place place(norm, idle ? 0 : run);
  const bf16* const x = norm.x.FlatRow(place.flat_row) + place.column;
  const bf16* const g = grad.FlatRow(place.flat_row) + place.column;
  const float r = idle ? 0.0f : saved[run];
  float sum = 0;
  Team::ForEachRun(norm.size, [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      const float product =
          norm.NormalisedGradient(g, place.row, i) * Widen(norm.weight[i]) * Widen(x[i]);
      sum = __fmaf_rn(product, r, sum);
    }
  });
  sum = Team::Fold(sum, shared);
  if (idle) return;
  const float size = static_cast<float>(norm.size);
  const float factor = (1.0f / size) * r;
  bf16* const to = grad_x.FlatRow(place.flat_row) + place.column;
  for (int i = Team::Thread(); i < norm.size; i += Team::kThreads) {
    const float difference =
        __fmaf_rn(size * Widen(norm.weight[i]), norm.NormalisedGradient(g, place.row, i),
                  -(Widen(x[i]) * r * sum));
    to[i] = cuda::RoundToBf16(difference * factor);
  }
}

struct WeightContribution {
  Norm norm;
  View<const bf16> grad;
  const float* saved;

  // `sum` and the term of a run, which numbers those of all rows.
  __device__ float Add(int64_t run, int64_t i, float sum) const {
    const Place place(norm, run);
    const float product =
        norm.NormalisedGradient(grad.FlatRow(place.flat_row) + place.column, place.row, i) *
        Widen(norm.x.FlatRow(place.flat_row)[place.column + i]);
    return __fmaf_rn(product, saved[run], sum);
  }
};

struct ScaleContribution {
  Norm norm;
  View<const bf16> grad;
  const float* saved;

  __device__ float operator()(int64_t item, int64_t row, int64_t column) const {
    const float r = saved[item * norm.x.rows + row];
    const float normalised =
        RoundThroughBf16(Widen(norm.weight[column]) * (r * Widen(norm.x.Row(row, item)[column])));
    return Widen(grad.Row(row, item)[column]) * normalised;
  }
};

struct ShiftContribution {
  View<const bf16> grad;

  __device__ float operator()(int64_t item, int64_t row, int64_t column) const {
    return Widen(grad.Row(row, item)[column]);
  }
};

class RmsNorm final : public ProviderOperation {
 public:
  explicit RmsNorm(OpKind op) : ProviderOperation(op) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(Norm(call).all_runs) * sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    cuda::Workspace measure;
    const WeightGradientScratch scratch(Norm(call).all_runs, call.parameters[0].width, measure);
    return measure.bytes();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Norm norm(call);
    if (norm.all_runs == 0) return absl::OkStatus();
    const auto kernel = IsOneWarp(norm) ? ForwardKernel<1> : ForwardKernel<cuda::kRowWarps>;
    kernel<<<Blocks(norm), kThreads, 0, Stream(context)>>>(
        norm, call.attributes.epsilon, static_cast<float*>(call.saved), View<bf16>(call.output));
    return LaunchStatus("provider RMSNorm");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Norm norm(call);
    const View<const bf16> grad(call.grad_output);
    const float* const saved = static_cast<const float*>(call.saved);
    absl::Status done = absl::OkStatus();
    if (const Tensor& grad_x = call.grad_inputs[kX]; !grad_x.IsNull() && norm.all_runs > 0) {
      const auto kernel =
          IsOneWarp(norm) ? InputGradientKernel<1> : InputGradientKernel<cuda::kRowWarps>;
      kernel<<<Blocks(norm), kThreads, 0, Stream(context)>>>(norm, saved, grad, View<bf16>(grad_x));
      done.Update(LaunchStatus("provider RMSNorm backward"));
    }
    if (!call.grad_parameters[0].IsNull()) {
      cuda::Workspace workspace(context.workspace);
      const WeightGradientScratch scratch(norm.all_runs, call.parameters[0].width, workspace);
      done.Update(SumWeightGradient(Stream(context), norm.all_runs,
                                    WeightContribution{norm, grad, saved}, scratch,
                                    call.grad_parameters[0], "provider RMSNorm weight gradient"));
    }
    if (!norm.modulated) return done;
    const int64_t batch = call.inputs[kX].batch;
    const Tensor& index = call.inputs[kIndex];
    if (const Tensor& grad_scale = call.grad_inputs[kScale]; !grad_scale.IsNull()) {
      done.Update(AddToTable(Stream(context), batch, index, grad_scale,
                             ScaleContribution{norm, grad, saved}));
    }
    if (const Tensor& grad_shift = call.grad_inputs[kShift]; !grad_shift.IsNull()) {
      done.Update(AddToTable(Stream(context), batch, index, grad_shift, ShiftContribution{grad}));
    }
    return done;
  }

 private:
  static bool IsOneWarp(const Norm& norm) { return norm.size <= cuda::kOneWarpWidth; }
  static unsigned Blocks(const Norm& norm) {
    const int64_t teams = IsOneWarp(norm) ? cuda::kRowWarps : 1;
    return static_cast<unsigned>((norm.all_runs + teams - 1) / teams);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRmsNorm() {
  return std::make_shared<RmsNorm>(OpKind::kRmsNorm);
}
std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<RmsNorm>(OpKind::kModulatedRmsNorm);
}

}  // namespace plumbline::provider_cuda
