#include "kernels/cuda/operation_checks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/call_check.h"

namespace plumbline {
namespace {

constexpr int64_t kAny = CallCheck::kAny;
constexpr char kOutput[] = "the output";
constexpr std::initializer_list<DType> kEither = {DType::kBF16, DType::kF32};
constexpr std::initializer_list<DType> kFloat32Alone = {DType::kF32};
constexpr std::initializer_list<DType> kBfloat16Alone = {DType::kBF16};

// What grids hold: at least 128 rows a block of a product, 128 columns a block of a sum of columns,
// and one slice (a head of a batch item, a row of a table) a block, in the two of a grid's
// dimensions that have 65535 blocks.
constexpr int64_t kMostSlices = 65535;
constexpr int64_t kMostRows = int64_t{1} << 22;
constexpr int64_t kMostWidth = int64_t{1} << 22;
static_assert(kMostRows / 128 <= kMostSlices && kMostWidth / 128 <= kMostSlices);

class Checker {
 public:
  Checker(absl::string_view implementation, Precision precision, OpKind op, const ForwardCall& call)
      : implementation_(implementation),
        full_(precision == Precision::kFloat32),
        op_(op),
        call_(call) {}

  absl::Status Run() const {
    switch (op_) {
      case OpKind::kTimeProjection:
        return TimeProjection();
      case OpKind::kTimeEmbedder:
        return TimeEmbedder();
      case OpKind::kLinear:
        return Linear();
      case OpKind::kAdalnProjection:
        return AdalnProjection();
      case OpKind::kRmsNorm:
        return RmsNorm();
      case OpKind::kModulatedRmsNorm:
        return ModulatedRmsNorm();
      case OpKind::kRope:
        return Rope();
      case OpKind::kAttention:
        return Attention();
      case OpKind::kGatedResidual:
        return GatedResidual();
      case OpKind::kResidual:
        return Residual();
      case OpKind::kSwiGlu:
        return SwiGlu();
      case OpKind::kScatterRows:
        return ScatterRows();
      case OpKind::kGatherRows:
        return GatherRows();
      case OpKind::kCast:
        return Cast();
      case OpKind::kGradSum:
        return GradSum();
      default:  // Those of the decoders: kernels/decoders/checks.h.
        return absl::InvalidArgumentError("no operation of the transformer");
    }
  }

 private:
  CallCheck Begin(size_t inputs, size_t parameters, size_t optional_parameters = 0) const {
    return CallCheck(implementation_, op_, call_, inputs, parameters, optional_parameters);
  }
  const Tensor& input(size_t i) const { return call_.inputs[i]; }
  const Tensor& parameter(size_t i) const { return call_.parameters[i]; }

  // Of activations that are bfloat16 in mixed precision.
  std::initializer_list<DType> Activations() const {
    return full_ ? kFloat32Alone : kBfloat16Alone;
  }
  // Of what may be float32 in mixed precision, too.
  std::initializer_list<DType> AnyActivations() const { return full_ ? kFloat32Alone : kEither; }
  // Of parameters beside bfloat16 activations.
  std::initializer_list<DType> Parameters() const { return full_ ? kEither : kBfloat16Alone; }

  void CheckOutputLike(CallCheck& check, const Tensor& x) const {
    check.Type(kOutput, call_.output, Activations())
        .Shape(kOutput, call_.output, x.batch, x.rows, x.width);
  }

  // What a linear layer asks of its weight, bias and output; in mixed precision all of one type.
  void CheckLayer(CallCheck& check, const Tensor& x) const {
    const Tensor& weight = parameter(0);
    check.Type("weight", weight, kEither).Shape("weight", weight, 1, kAny, x.width);
    if (call_.parameters.size() > 1) {
      if (full_) {
        check.Type("bias", parameter(1), kEither);
      } else {
        check.Type("bias", parameter(1), {weight.dtype});
      }
      check.Shape("bias", parameter(1), 1, 1, weight.rows);
    }
    check.Type(kOutput, call_.output, {full_ ? DType::kF32 : weight.dtype})
        .Shape(kOutput, call_.output, x.batch, x.rows, weight.rows)
        .That(IsOneMatrix(x), "the batch items of the input must follow one another")
        .That(IsOneMatrix(call_.output), "the batch items of the output must follow one another");
  }

  // A table, and the index that names its row for each row of x.
  void CheckTable(CallCheck& check, absl::string_view name, const Tensor& table, int64_t rows,
                  const Tensor& index, const Tensor& x) const {
    check.Type(name, table, Activations())
        .Shape(name, table, 1, rows, x.width)
        .Type("index", index, {DType::kI64})
        .Shape("index", index, 1, x.rows, 1);
  }

  void CheckHeads(CallCheck& check, const Tensor& x) const {
    const int64_t head_width = call_.attributes.head_width;
    check.That(
        head_width > 0 && x.width % head_width == 0,
        absl::StrCat("the width ", x.width, " must be a multiple of the head width ", head_width));
  }

  absl::Status TimeProjection() const {
    CallCheck check = Begin(1, 0);
    if (!check.ok()) return check.status();
    return check.Type("timestep", input(0), {DType::kF32})
        .Shape("timestep", input(0), 1, kAny, 1)
        .Type(kOutput, call_.output, {DType::kF32})
        .Shape(kOutput, call_.output, 1, input(0).rows, kAny)
        .That(call_.output.width % 2 == 0, "the output's width must be even")
        .status();
  }

  absl::Status TimeEmbedder() const {
    CallCheck check = Begin(1, 4);
    if (!check.ok()) return check.status();
    const Tensor& features = input(0);
    const int64_t hidden = parameter(0).rows;
    const int64_t outputs = parameter(2).rows;
    const std::initializer_list<DType> types = full_ ? kEither : kFloat32Alone;
    return check.Type("features", features, {DType::kF32})
        .Shape("features", features, 1, kAny, kAny)
        .Type("linear_1.weight", parameter(0), types)
        .Shape("linear_1.weight", parameter(0), 1, kAny, features.width)
        .Type("linear_1.bias", parameter(1), types)
        .Shape("linear_1.bias", parameter(1), 1, 1, hidden)
        .Type("linear_2.weight", parameter(2), types)
        .Shape("linear_2.weight", parameter(2), 1, kAny, hidden)
        .Type("linear_2.bias", parameter(3), types)
        .Shape("linear_2.bias", parameter(3), 1, 1, outputs)
        .Type(kOutput, call_.output, {DType::kF32})
        .Shape(kOutput, call_.output, 1, features.rows, outputs)
        .status();
  }

  absl::Status Linear() const {
    CallCheck check = Begin(1, 1, 1);
    if (!check.ok()) return check.status();
    check.Type("x", input(0), AnyActivations());
    CheckLayer(check, input(0));
    return check.status();
  }

  absl::Status AdalnProjection() const {
    CallCheck check = Begin(1, 2);
    if (!check.ok()) return check.status();
    check.Type("temb", input(0), {DType::kF32}).Shape("temb", input(0), 1, kAny, kAny);
    CheckLayer(check, input(0));
    return check.status();
  }

  absl::Status RmsNorm() const {
    CallCheck check = Begin(1, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    const Tensor& weight = parameter(0);
    check.Type("x", x, Activations())
        .Type("weight", weight, Parameters())
        .Shape("weight", weight, 1, 1, kAny)
        .That(weight.width > 0 && x.width % weight.width == 0,
              absl::StrCat("the width ", x.width, " must be a multiple of the weight's width ",
                           weight.width));
    CheckOutputLike(check, x);
    return check.status();
  }

  absl::Status ModulatedRmsNorm() const {
    CallCheck check = Begin(4, 1);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    check.Type("x", x, Activations());
    CheckTable(check, "scale", input(1), kAny, input(3), x);
    CheckTable(check, "shift", input(2), input(1).rows, input(3), x);
    check.Type("weight", parameter(0), Parameters()).Shape("weight", parameter(0), 1, 1, x.width);
    CheckOutputLike(check, x);
    return check.status();
  }

  absl::Status Rope() const {
    CallCheck check = Begin(2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    const Attributes& attributes = call_.attributes;
    check.Type("x", x, Activations())
        .Type("position_ids", input(1), {DType::kF64})
        .Shape("position_ids", input(1), 1, x.rows, 3);
    CheckHeads(check, x);
    check
        .That(
            attributes.rotary_frequencies >= 0 &&
                6 * attributes.rotary_frequencies <= attributes.head_width,
            absl::StrCat("6 x ", attributes.rotary_frequencies,
                         " rotated channels must fit into the head width ", attributes.head_width))
        .That(attributes.rotary_theta > 0, "rotary_theta must be positive");
    CheckOutputLike(check, x);
    return check.status();
  }

  absl::Status Attention() const {
    CallCheck check = Begin(3, 0);
    if (!check.ok()) return check.status();
    const Tensor& q = input(0);
    check.Type("q", q, Activations());
    for (size_t i = 1; i < 3; ++i) {
      const absl::string_view name = i == 1 ? "k" : "v";
      check.Type(name, input(i), Activations()).Shape(name, input(i), q.batch, q.rows, q.width);
    }
    CheckHeads(check, q);
    check.That(call_.attributes.head_width <= kMostHeadWidth,
               absl::StrCat("the head width ", call_.attributes.head_width, " must be at most ",
                            kMostHeadWidth));
    CheckOutputLike(check, q);
    return check.status();
  }

  absl::Status GatedResidual() const {
    CallCheck check = Begin(4, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    check.Type("x", x, Activations())
        .Type("branch", input(1), Activations())
        .Shape("branch", input(1), x.batch, x.rows, x.width);
    CheckTable(check, "gate", input(2), kAny, input(3), x);
    CheckOutputLike(check, x);
    return check.status();
  }

  absl::Status Residual() const {
    CallCheck check = Begin(2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    check.Type("x", x, Activations())
        .Type("branch", input(1), Activations())
        .Shape("branch", input(1), x.batch, x.rows, x.width);
    CheckOutputLike(check, x);
    return check.status();
  }

  absl::Status SwiGlu() const {
    CallCheck check = Begin(1, 0);
    if (!check.ok()) return check.status();
    const Tensor& gate_up = input(0);
    return check.Type("gate_up", gate_up, Activations())
        .Type(kOutput, call_.output, Activations())
        .Shape(kOutput, call_.output, gate_up.batch, gate_up.rows, gate_up.width / 2)
        .That(gate_up.width % 2 == 0,
              absl::StrCat("the width of gate_up, ", gate_up.width, ", must be even"))
        .status();
  }

  absl::Status ScatterRows() const {
    static constexpr absl::string_view kSources[] = {"text", "video", "audio"};
    CallCheck check = Begin(6, 0);
    if (!check.ok()) return check.status();
    int64_t rows = 0;
    for (size_t i = 0; i < 3; ++i) {
      const std::string indices_name = absl::StrCat(kSources[i], "_indices");
      check.Type(kSources[i], input(i), AnyActivations())
          .Shape(kSources[i], input(i), input(0).batch, kAny, input(0).width)
          .Type(indices_name, input(3 + i), {DType::kI64})
          .Shape(indices_name, input(3 + i), 1, input(i).rows, 1);
      rows += input(i).rows;
    }
    return check.Type(kOutput, call_.output, AnyActivations())
        .Shape(kOutput, call_.output, input(0).batch, rows, input(0).width)
        .status();
  }

  absl::Status GatherRows() const {
    CallCheck check = Begin(2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    return check.Type("x", x, AnyActivations())
        .Type("indices", input(1), {DType::kI64})
        .Shape("indices", input(1), 1, kAny, 1)
        .Type(kOutput, call_.output, {x.dtype})
        .Shape(kOutput, call_.output, x.batch, input(1).rows, x.width)
        .status();
  }

  absl::Status Cast() const {
    CallCheck check = Begin(1, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = input(0);
    return check.Type("x", x, AnyActivations())
        .Type(kOutput, call_.output, AnyActivations())
        .Shape(kOutput, call_.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status GradSum() const {
    CallCheck check = Begin(2, 0);
    if (!check.ok()) return check.status();
    const Tensor& a = input(0);
    return check.Type("a", a, AnyActivations())
        .Type("b", input(1), {a.dtype})
        .Shape("b", input(1), a.batch, a.rows, a.width)
        .Type(kOutput, call_.output, {a.dtype})
        .Shape(kOutput, call_.output, a.batch, a.rows, a.width)
        .status();
  }

  const absl::string_view implementation_;
  const bool full_;
  const OpKind op_;
  const ForwardCall& call_;
};

// Whether every extent fits into a grid of blocks.
absl::Status CheckExtents(absl::string_view implementation, OpKind op, const ForwardCall& call) {
  CallCheck check(implementation, op, call, call.inputs.size(), call.parameters.size());
  const auto demand = [&](int64_t extent, int64_t most, absl::string_view what) {
    if (extent > most)
      check.That(false, absl::StrCat(what, ", ", extent, ", must be at most ", most));
  };
  const auto demand_of = [&](const Tensor& tensor, absl::string_view name) {
    demand(tensor.batch * tensor.rows, kMostRows,
           absl::StrCat("the rows of ", name, " in all batch items"));
    demand(tensor.width, kMostWidth, absl::StrCat("the width of ", name));
  };
  for (const Tensor& input : call.inputs) demand_of(input, "an input");
  for (const Tensor& parameter : call.parameters) demand_of(parameter, "a parameter");
  demand_of(call.output, kOutput);
  if (op == OpKind::kModulatedRmsNorm) {
    demand(call.inputs[1].rows, kMostSlices, "the rows of scale and shift");
  }
  if (op == OpKind::kGatedResidual) demand(call.inputs[2].rows, kMostSlices, "the rows of gate");
  if (op == OpKind::kAttention) {
    const Tensor& q = call.inputs[0];
    demand(q.batch * (q.width / call.attributes.head_width), kMostSlices,
           "the heads of all batch items");
  }
  return check.status();
}

}  // namespace

absl::Status CheckCall(absl::string_view implementation, Precision precision, OpKind op,
                       const ForwardCall& call) {
  const absl::Status status = Checker(implementation, precision, op, call).Run();
  return status.ok() ? CheckExtents(implementation, op, call) : status;
}

}  // namespace plumbline
