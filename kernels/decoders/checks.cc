#include "kernels/decoders/checks.h"

#include <algorithm>

#include "kernels/cpu/call_check.h"

namespace plumbline::decoders {
namespace {

constexpr int64_t kAny = CallCheck::kAny;
constexpr char kOutput[] = "the output";

class Checker {
 public:
  Checker(absl::string_view implementation, OpKind op, const ForwardCall& call)
      : implementation_(implementation), op_(op), call_(call) {}

  absl::Status Run() {
    switch (op_) {
      case OpKind::kDecoderRmsNorm:
        return Norm(/*parameters=*/1);
      case OpKind::kDecoderLayerNorm:
        return Norm(/*parameters=*/2);
      case OpKind::kDecoderHeadNorm:
        return HeadNorm();
      case OpKind::kDecoderRope:
        return Rope();
      case OpKind::kDecoderAttention:
        return Attention();
      case OpKind::kDecoderSwiGlu:
        return SwiGlu();
      case OpKind::kDecoderResidual:
        return Residual();
      case OpKind::kAppendTokens:
        return AppendTokens();
      case OpKind::kConv1d:
        return Conv1d();
      case OpKind::kConvTranspose1d:
        return ConvTranspose1d();
      case OpKind::kSnakeBeta:
        return SnakeBeta();
      case OpKind::kMean:
        return Mean();
      default:
        return absl::InvalidArgumentError("no operation of a decoder");
    }
  }

 private:
  CallCheck Begin(size_t inputs, size_t parameters, size_t optional_parameters = 0) const {
    return CallCheck(implementation_, op_, call_, inputs, parameters, optional_parameters);
  }
  const Tensor& input(size_t i) const { return call_.inputs[i]; }
  const Tensor& parameter(size_t i) const { return call_.parameters[i]; }

  static void Float32(CallCheck* check, absl::string_view name, const Tensor& tensor, int64_t batch,
                      int64_t rows, int64_t width) {
    check->Type(name, tensor, {DType::kF32}).Shape(name, tensor, batch, rows, width);
  }
  static void Vector(CallCheck* check, absl::string_view name, const Tensor& tensor,
                     int64_t width) {
    Float32(check, name, tensor, 1, 1, width);
  }
  static void SameShape(CallCheck* check, absl::string_view name, const Tensor& tensor,
                        const Tensor& as) {
    Float32(check, name, tensor, as.batch, as.rows, as.width);
  }
  void Heads(CallCheck* check) const {
    const int64_t head_width = call_.attributes.head_width;
    check->That(head_width > 0 && input(0).width % head_width == 0,
                "the width must be a multiple of head_width");
  }

  absl::Status Norm(size_t parameters) {
    CallCheck check = Begin(1, parameters);
    if (!check.ok()) return check.status();
    SameShape(&check, "x", input(0), input(0));
    Vector(&check, "weight", parameter(0), input(0).width);
    if (parameters > 1) Vector(&check, "bias", parameter(1), input(0).width);
    SameShape(&check, kOutput, call_.output, input(0));
    return check.status();
  }

  absl::Status HeadNorm() {
    CallCheck check = Begin(1, 0);
    if (!check.ok()) return check.status();
    SameShape(&check, "x", input(0), input(0));
    SameShape(&check, kOutput, call_.output, input(0));
    Heads(&check);
    return check.status();
  }

  absl::Status Rope() {
    CallCheck check = Begin(2, 0);
    if (!check.ok()) return check.status();
    const Attributes& attributes = call_.attributes;
    SameShape(&check, "x", input(0), input(0));
    SameShape(&check, kOutput, call_.output, input(0));
    Heads(&check);
    return check.Type("position_ids", input(1), {DType::kF64})
        .Shape("position_ids", input(1), 1, input(0).rows, 3)
        .That(
            attributes.rotary_frequencies > 0 && attributes.rotary_frequencies <= kMostFrequencies,
            "rotary_frequencies must be 1 to 64")
        .That(6 * attributes.rotary_frequencies <= attributes.head_width,
              "6 rotary_frequencies must be at most head_width")
        .That(attributes.rotary_theta > 0, "rotary_theta must be above 0")
        .status();
  }

  absl::Status Attention() {
    CallCheck check = Begin(3, 0);
    if (!check.ok()) return check.status();
    for (const Tensor& each : call_.inputs) SameShape(&check, "q, k or v", each, input(0));
    SameShape(&check, kOutput, call_.output, input(0));
    Heads(&check);
    return check.status();
  }

  absl::Status SwiGlu() {
    CallCheck check = Begin(1, 0);
    if (!check.ok()) return check.status();
    SameShape(&check, "gate_up", input(0), input(0));
    check.That(input(0).width % 2 == 0, "the width of gate_up must be even");
    Float32(&check, kOutput, call_.output, input(0).batch, input(0).rows, input(0).width / 2);
    return check.status();
  }

  absl::Status Residual() {
    CallCheck check = Begin(2, 0, 1);
    if (!check.ok()) return check.status();
    SameShape(&check, "x", input(0), input(0));
    SameShape(&check, "branch", input(1), input(0));
    if (!call_.parameters.empty()) Vector(&check, "scale", parameter(0), input(0).width);
    SameShape(&check, kOutput, call_.output, input(0));
    return check.status();
  }

  absl::Status AppendTokens() {
    CallCheck check = Begin(1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    SameShape(&check, "x", x, x);
    Vector(&check, "tokens", parameter(0), kAny);
    check.That(x.width > 0 && parameter(0).width % x.width == 0,
               "the tokens must have the width of x");
    if (!check.ok()) return check.status();
    Float32(&check, kOutput, call_.output, x.batch, x.rows + parameter(0).width / x.width + 1,
            x.width);
    return check.status();
  }

  absl::Status Conv1d() {
    const size_t least = call_.attributes.weight_norm ? 2 : 1;
    CallCheck check = Begin(1, least, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    const Tensor& weight = parameter(0);
    SameShape(&check, "x", x, x);
    Float32(&check, "weight", weight, 1, kAny, kAny);
    check
        .That(x.width > 0 && weight.width % x.width == 0 && weight.width / x.width % 2 == 1,
              "the weight must have an odd number of taps of the width of x")
        .That(weight.row_stride == weight.width, "the weight must be dense")
        .That(call_.attributes.dilation > 0, "dilation must be above 0");
    if (call_.attributes.weight_norm) Float32(&check, "gain", parameter(1), 1, weight.rows, 1);
    if (call_.parameters.size() > least) Vector(&check, "bias", parameter(least), weight.rows);
    Float32(&check, kOutput, call_.output, x.batch, x.rows, weight.rows);
    return check.status();
  }

  absl::Status ConvTranspose1d() {
    CallCheck check = Begin(1, 3);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    const Tensor& weight = parameter(0);
    const int64_t outputs = parameter(2).width;
    const int64_t stride = call_.attributes.stride;
    SameShape(&check, "x", x, x);
    Float32(&check, "weight", weight, 1, x.width, kAny);
    Float32(&check, "gain", parameter(1), 1, x.width, 1);
    Vector(&check, "bias", parameter(2), kAny);
    check.That(stride > 0, "stride must be above 0")
        .That(outputs > 0 && weight.width % outputs == 0 && weight.width / outputs >= stride &&
                  (weight.width / outputs - stride) % 2 == 0,
              "the weight must have as many taps as the stride, or an even number more")
        .That(weight.row_stride == weight.width, "the weight must be dense");
    Float32(&check, kOutput, call_.output, x.batch, x.rows * stride, outputs);
    return check.status();
  }

  absl::Status SnakeBeta() {
    CallCheck check = Begin(1, 4);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    const int64_t taps = parameter(2).width;
    SameShape(&check, "x", x, x);
    Vector(&check, "alpha", parameter(0), x.width);
    Vector(&check, "beta", parameter(1), x.width);
    Vector(&check, "up", parameter(2), taps);
    Vector(&check, "down", parameter(3), taps);
    check.That(taps >= 2 && taps % 2 == 0, "the filters must have an even number of taps")
        .That(x.rows > 0, "x must have a row");
    SameShape(&check, kOutput, call_.output, x);
    return check.status();
  }

  absl::Status Mean() {
    CallCheck check = Begin(std::max<size_t>(call_.inputs.size(), 1), 0);
    if (!check.ok()) return check.status();
    for (const Tensor& each : call_.inputs) SameShape(&check, "an input", each, input(0));
    SameShape(&check, kOutput, call_.output, input(0));
    return check.status();
  }

  const absl::string_view implementation_;
  const OpKind op_;
  const ForwardCall& call_;
};

}  // namespace

absl::Status CheckLinear(absl::string_view implementation, const ForwardCall& call) {
  CallCheck check(implementation, OpKind::kDecoderLinear, call, 1, 2);
  if (!check.ok()) return check.status();
  const Tensor& x = call.inputs[0];
  const Tensor& weight = call.parameters[0];
  return check.Type("x", x, {DType::kF32})
      .Type("weight", weight, {DType::kF32})
      .Shape("weight", weight, 1, kAny, x.width)
      .Type("bias", call.parameters[1], {DType::kF32})
      .Shape("bias", call.parameters[1], 1, 1, weight.rows)
      .Type(kOutput, call.output, {DType::kF32})
      .Shape(kOutput, call.output, x.batch, x.rows, weight.rows)
      .status();
}

absl::Status CheckCall(absl::string_view implementation, OpKind op, const ForwardCall& call) {
  return Checker(implementation, op, call).Run();
}

}  // namespace plumbline::decoders
