#include "kernels/candidate/cpu/linear.h"

#include "kernels/candidate/cpu/convert.h"
#include "kernels/candidate/cpu/parameter_gradient.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/call_check.h"
#include "kernels/cpu/gemm.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::candidate {
namespace {

int64_t AllRows(const Tensor& tensor) { return tensor.batch * tensor.rows; }

bool NeedsRounding(const LinearLayer& layer) {
  return layer.x.dtype == DType::kF32 && layer.weight.dtype == DType::kBF16;
}

// Scratch of one call. `rounded_x` has a place where x must be rounded to the weight's type (to
// widen, the product reads x as it is), `run_sums` in a backward.
struct Layout {
  Layout(const LinearLayer& layer, bool backward, const ExecutionContext& context) {
    WorkspaceLayout layout(context.workspace.data());
    const Tensor& x = layer.x;
    gemm_bytes = GemmWorkspaceBytes<float>(context.threads->num_threads());
    gemm = layout.Bytes(gemm_bytes);
    rounded_x = Tensor::Dense(nullptr, DType::kBF16, x.batch, x.rows, x.width);
    if (NeedsRounding(layer)) rounded_x.data = layout.Bytes(rounded_x.NumBytes());
    if (backward) run_sums = layout.Floats(RunCount(AllRows(x)) * layer.weight.rows);
    bytes = layout.bytes();
  }

  absl::Span<uint8_t> Gemm() const { return absl::MakeSpan(gemm, gemm_bytes); }

  uint8_t* gemm;
  size_t gemm_bytes;
  Tensor rounded_x;
  float* run_sums = nullptr;
  size_t bytes;
};

// x as the product reads it.
Tensor CastInput(const ExecutionContext& context, const LinearLayer& layer, const Layout& layout) {
  if (!NeedsRounding(layer)) return layer.x;
  ConvertRows(*context.threads, layer.x, layout.rounded_x);
  return layout.rounded_x;
}

// Stores `count` sums of row `row` (counted through the batch), rounded to `rounding` and then cast
// to the tensor's type.
void StoreSums(const float* sums, DType rounding, const Tensor& to, int64_t row, int64_t column,
               int64_t count) {
  const int64_t item = row / to.rows;
  const int64_t item_row = row % to.rows;
  if (to.dtype == DType::kBF16) {
    // A float32 product that is rounded once gives bfloat16 whether it was "rounded" to float32
    // or to bfloat16 before.
    RoundToBf16(absl::MakeConstSpan(sums, count), to.Row<bfloat16>(item_row, item) + column);
    return;
  }
  float* values = to.Row<float>(item_row, item) + column;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = rounding == DType::kBF16 ? RoundThroughBf16(sums[i]) : sums[i];
  }
}

// Stores sums + bias, rounded once.
void StoreBiased(const float* sums, const Tensor& bias, const Tensor& to, int64_t row,
                 int64_t column, int64_t count) {
  const int64_t item = row / to.rows;
  const int64_t item_row = row % to.rows;
  if (to.dtype == DType::kBF16) {
    bfloat16* values = to.Row<bfloat16>(item_row, item) + column;
    const bfloat16* added = bias.Row<bfloat16>(0) + column;
    for (int64_t i = 0; i < count; ++i) values[i] = RoundToBf16(sums[i] + WidenBf16(added[i]));
  } else {
    float* values = to.Row<float>(item_row, item) + column;
    const float* added = bias.Row<float>(0) + column;
    for (int64_t i = 0; i < count; ++i) values[i] = sums[i] + added[i];
  }
}

class Linear final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kLinear, call, 1, 1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& weight = call.parameters[0];
    check.Type("x", x, {DType::kBF16, DType::kF32})
        .That(IsOneMatrix(x), "the batch items of x must follow one another")
        .Type("weight", weight, {DType::kBF16, DType::kF32})
        .Shape("weight", weight, 1, CallCheck::kAny, x.width);
    if (call.parameters.size() > 1) {
      check.Type("bias", call.parameters[1], {weight.dtype})
          .Shape("bias", call.parameters[1], 1, 1, weight.rows);
    }
    return check.Type("the output", call.output, {weight.dtype})
        .Shape("the output", call.output, x.batch, x.rows, weight.rows)
        .status();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return LinearForwardBytes(Layer(call), context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return LinearBackwardBytes(Layer(call), context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    LinearForward(context, Layer(call), call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!IsOneMatrix(call.grad_output)) {
      return absl::InvalidArgumentError(
          "candidate Linear: the batch items of the output's gradient must follow one another");
    }
    LinearGradients gradients = {call.grad_inputs[0], call.grad_parameters[0], Tensor()};
    if (call.parameters.size() > 1) gradients.bias = call.grad_parameters[1];
    LinearBackward(context, Layer(call), call.grad_output, gradients);
    return absl::OkStatus();
  }

 private:
  template <typename Call>
  static LinearLayer Layer(const Call& call) {
    return {call.inputs[0], call.parameters[0],
            call.parameters.size() > 1 ? call.parameters[1] : Tensor()};
  }
};

}  // namespace

bool IsOneMatrix(const Tensor& tensor) {
  return tensor.batch == 1 || tensor.batch_stride == tensor.rows * tensor.row_stride;
}

size_t LinearForwardBytes(const LinearLayer& layer, const ExecutionContext& context) {
  return Layout(layer, false, context).bytes;
}

void LinearForward(const ExecutionContext& context, const LinearLayer& layer,
                   const Tensor& output) {
  const Layout layout(layer, false, context);
  const Tensor& weight = layer.weight;
  const Tensor x = CastInput(context, layer, layout);
  Gemm<float>(
      {AllRows(x), weight.rows, x.width}, GemmOperand::Of(x), GemmOperand::Of(weight).Transposed(),
      [&](int64_t row, int64_t column, int64_t count, const float* sums) {
        if (layer.bias.IsNull()) {
          StoreSums(sums, weight.dtype, output, row, column, count);
        } else {
          StoreBiased(sums, layer.bias, output, row, column, count);
        }
      },
      layout.Gemm(), *context.threads);
}

size_t LinearBackwardBytes(const LinearLayer& layer, const ExecutionContext& context) {
  return Layout(layer, true, context).bytes;
}

void LinearBackward(const ExecutionContext& context, const LinearLayer& layer,
                    const Tensor& grad_output, const LinearGradients& gradients) {
  const Layout layout(layer, true, context);
  const Tensor& weight = layer.weight;
  const int64_t rows = AllRows(grad_output);
  const auto store_into = [&weight](const Tensor& gradient) {
    return [&](int64_t row, int64_t column, int64_t count, const float* sums) {
      StoreSums(sums, weight.dtype, gradient, row, column, count);
    };
  };
  if (!gradients.x.IsNull()) {
    Gemm<float>({rows, weight.width, weight.rows}, GemmOperand::Of(grad_output),
                GemmOperand::Of(weight), store_into(gradients.x), layout.Gemm(), *context.threads);
  }
  if (!gradients.weight.IsNull()) {
    const Tensor x = CastInput(context, layer, layout);
    Gemm<float>({weight.rows, weight.width, rows}, GemmOperand::Of(grad_output).Transposed(),
                GemmOperand::Of(x), store_into(gradients.weight), layout.Gemm(), *context.threads);
  }
  if (!gradients.bias.IsNull()) {
    SumRows(*context.threads, grad_output, layout.run_sums, gradients.bias);
  }
}

std::shared_ptr<const Operation> MakeLinear() { return std::make_shared<Linear>(); }

}  // namespace plumbline::candidate
