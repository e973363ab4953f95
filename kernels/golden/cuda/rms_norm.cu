// kRmsNorm and kModulatedRmsNorm of the golden.
//
//   x (batch, R, W), weight (1, 1, G), W a multiple of G: each run of G channels is a norm of its
//   own. Modulated, with G = W: scale, shift (1, table rows, W), index (1, R, 1) int64.
//   forward   r = 1 / sqrt(mean(x^2) + epsilon); m = x r weight; y = m, modulated
//             m (1 + scale[index]) + shift[index]
//   backward  dm = dy, modulated dy (1 + scale[index]); dn = dm weight, n = x r:
//             dx = r (dn - n mean(dn n)); dweight = sum of dm n; per table row, dscale = sum of
//             dy m, dshift = sum of dy
// Rounding: float64 inside, each result once. Order: sums over G: 128 threads, thread t takes
// channels t, t + 128, ..., their sums added in a binary tree, halves first; dweight as
// kernels/cuda/column_sums.cuh, runs of a row ascending; the tables as table_gradient.cuh.
// Saved: r of every run, float64.
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/parameter_view.cuh"
#include "kernels/golden/cuda/operations.h"
#include "kernels/golden/cuda/table_gradient.cuh"

namespace plumbline::golden_cuda {
namespace {

using cuda::ParameterView;
using cuda::View;

enum Input { kX, kScale, kShift, kIndex };

constexpr int kThreads = 128;

// The inputs of either operation; of kRmsNorm the tables are null.
struct Norm {
  View<const float> x;
  ParameterView weight;
  View<const float> scale;
  View<const float> shift;
  View<const int64_t> index;
  bool modulated;
  int64_t runs;  // of a row
  int64_t size;  // G

  template <typename Call>
  explicit Norm(const Call& call)
      : x(call.inputs[kX]),
        weight(call.parameters[0]),
        scale(Table(call, kScale)),
        shift(Table(call, kShift)),
        index(Table(call, kIndex)),
        modulated(call.inputs.size() > 1),
        runs(call.inputs[kX].width / call.parameters[0].width),
        size(call.parameters[0].width) {}

  __device__ double Factor(int64_t row, int64_t column) const {
    return modulated ? 1.0 + scale.Row(*index.Row(row))[column] : 1.0;
  }

 private:
  template <typename Call>
  static Tensor Table(const Call& call, Input input) {
    return call.inputs.size() > 1 ? call.inputs[input] : Tensor();
  }
};

__device__ double FoldSum(double value, double* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

// A block a run.
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(Norm norm, double epsilon, double* saved, View<float> output) {
  __shared__ double shared[kThreads];
  const int64_t flat_row = blockIdx.x / norm.runs;
  const int64_t row = flat_row % norm.x.rows;
  const int64_t first = blockIdx.x % norm.runs * norm.size;
  const float* const x = norm.x.FlatRow(flat_row) + first;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  sum = FoldSum(sum, shared);
  const double r = 1.0 / sqrt(sum / static_cast<double>(norm.size) + epsilon);
  if (saved != nullptr && threadIdx.x == 0) saved[blockIdx.x] = r;
  float* const to = output.FlatRow(flat_row) + first;
  for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
    double value = x[i] * r * norm.weight[i];
    if (norm.modulated) {
      value = value * norm.Factor(row, i) + norm.shift.Row(*norm.index.Row(row))[i];
    }
    to[i] = static_cast<float>(value);
  }
}

__global__ void __launch_bounds__(kThreads)
    InputGradientKernel(Norm norm, const double* saved, View<const float> grad,
                        View<float> grad_x) {
  __shared__ double shared[kThreads];
  const int64_t flat_row = blockIdx.x / norm.runs;
  const int64_t row = flat_row % norm.x.rows;
  const int64_t first = blockIdx.x % norm.runs * norm.size;
  const float* const x = norm.x.FlatRow(flat_row) + first;
  const float* const g = grad.FlatRow(flat_row) + first;
  const double r = saved[blockIdx.x];
  const auto dn = [&](int64_t i) { return g[i] * norm.Factor(row, i) * norm.weight[i]; };
  double sum = 0;
  for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) sum += dn(i) * (x[i] * r);
  const double mean = FoldSum(sum, shared) / static_cast<double>(norm.size);
  float* const to = grad_x.FlatRow(flat_row) + first;
  for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
    to[i] = static_cast<float>(r * (dn(i) - x[i] * r * mean));
  }
}

struct WeightContribution {
  Norm norm;
  View<const float> grad;
  const double* saved;

  // `run` numbers the runs of all rows.
  __device__ double operator()(int64_t run, int64_t i) const {
    const int64_t flat_row = run / norm.runs;
    const int64_t place = run % norm.runs * norm.size + i;
    return grad.FlatRow(flat_row)[place] * norm.Factor(flat_row % norm.x.rows, i) *
           (norm.x.FlatRow(flat_row)[place] * saved[run]);
  }
};

struct ScaleContribution {
  Norm norm;
  View<const float> grad;
  const double* saved;

  __device__ double operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    return grad.Row(row, item)[column] *
           (norm.x.Row(row, item)[column] * saved[item * norm.x.rows + row] * norm.weight[column]);
  }
};

struct ShiftContribution {
  View<const float> grad;

  __device__ double operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    return grad.Row(row, item)[column];
  }
};

class RmsNorm final : public GoldenOperation {
 public:
  explicit RmsNorm(OpKind op) : GoldenOperation(op) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(Runs(call)) * sizeof(double);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return static_cast<size_t>(cuda::ColumnSumValues(Runs(call), call.parameters[0].width)) *
           sizeof(double);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    if (Runs(call) == 0) return absl::OkStatus();
    ForwardKernel<<<static_cast<unsigned>(Runs(call)), kThreads, 0, Stream(context)>>>(
        Norm(call), call.attributes.epsilon, static_cast<double*>(call.saved),
        View<float>(call.output));
    return LaunchStatus("golden RMSNorm");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Norm norm(call);
    const Tensor& index = call.inputs.back();  // where there are tables
    const View<const float> grad(call.grad_output);
    const double* const saved = static_cast<const double*>(call.saved);
    absl::Status done = absl::OkStatus();
    if (const Tensor& grad_x = call.grad_inputs[kX]; !grad_x.IsNull() && Runs(call) > 0) {
      InputGradientKernel<<<static_cast<unsigned>(Runs(call)), kThreads, 0, Stream(context)>>>(
          norm, saved, grad, View<float>(grad_x));
      done.Update(LaunchStatus("golden RMSNorm backward"));
    }
    if (!call.grad_parameters[0].IsNull()) {
      done.Update(cuda::SumColumns(Stream(context), Runs(call),
                                   WeightContribution{norm, grad, saved},
                                   reinterpret_cast<double*>(context.workspace.data()),
                                   call.grad_parameters[0], "golden RMSNorm weight gradient"));
    }
    if (!norm.modulated) return done;
    const int64_t batch = call.inputs[kX].batch;
    if (const Tensor& grad_scale = call.grad_inputs[kScale]; !grad_scale.IsNull()) {
      done.Update(SumIntoTable(Stream(context), batch, index, grad_scale,
                               ScaleContribution{norm, grad, saved}));
    }
    if (const Tensor& grad_shift = call.grad_inputs[kShift]; !grad_shift.IsNull()) {
      done.Update(SumIntoTable(Stream(context), batch, index, grad_shift, ShiftContribution{grad}));
    }
    return done;
  }

 private:
  // Of all rows and items.
  template <typename Call>
  static int64_t Runs(const Call& call) {
    return call.inputs[kX].NumElements() / call.parameters[0].width;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRmsNorm() {
  return std::make_shared<RmsNorm>(OpKind::kRmsNorm);
}
std::shared_ptr<const Operation> MakeModulatedRmsNorm() {
  return std::make_shared<RmsNorm>(OpKind::kModulatedRmsNorm);
}

}  // namespace plumbline::golden_cuda
