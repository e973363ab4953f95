// What no kernel supports is refused by the operation's Check, on the host, before anything could
// be launched: for every operation of every implementation on a GPU. Needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/builtin.h"
#include "kernels/registry.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

// A call without memory: no Check reads a value.
struct Call {
  std::vector<Tensor> inputs;
  std::vector<Tensor> parameters;
  Tensor output;
  Attributes attributes;
};

using Change = std::function<void(Call&)>;

struct Refusal {
  const char* what;
  Change change;
  const char* message;
};

// An operation, a call that every implementation takes, and what it does not take.
struct Row {
  OpKind op;
  Call call;
  std::vector<Refusal> refused;
};

Tensor Of(DType dtype, int64_t batch, int64_t rows, int64_t width) {
  return Tensor::Dense(nullptr, dtype, batch, rows, width);
}
// Activations: bfloat16, or float32 where that is the precision.
Tensor A(int64_t batch, int64_t rows, int64_t width) {
  return Of(DType::kBF16, batch, rows, width);
}
Tensor F(int64_t batch, int64_t rows, int64_t width) { return Of(DType::kF32, batch, rows, width); }
Tensor Index(int64_t rows) { return Of(DType::kI64, 1, rows, 1); }
Tensor Positions(int64_t rows) { return Of(DType::kF64, 1, rows, 3); }

Attributes Heads(int64_t head_width, int64_t frequencies = 0) {
  Attributes attributes;
  attributes.head_width = head_width;
  attributes.rotary_frequencies = frequencies;
  attributes.rotary_theta = 100;
  return attributes;
}

// Sets the extents of what is as wide or as long as the output.
Change Widths(int64_t from, int64_t to) {
  return [=](Call& call) {
    const auto set = [=](Tensor& tensor) {
      if (tensor.width == from) tensor = Of(tensor.dtype, tensor.batch, tensor.rows, to);
    };
    for (Tensor& tensor : call.inputs) set(tensor);
    for (Tensor& tensor : call.parameters) set(tensor);
    set(call.output);
  };
}
Change Rows(int64_t from, int64_t to) {
  return [=](Call& call) {
    const auto set = [=](Tensor& tensor) {
      if (tensor.rows == from) tensor = Of(tensor.dtype, tensor.batch, to, tensor.width);
    };
    for (Tensor& tensor : call.inputs) set(tensor);
    set(call.output);
  };
}
Change InputType(size_t input, DType dtype) {
  return [=](Call& call) { call.inputs[input].dtype = dtype; };
}
Change HeadWidth(int64_t width) {
  return [=](Call& call) { call.attributes.head_width = width; };
}
Change Frequencies(int64_t frequencies) {
  return [=](Call& call) { call.attributes.rotary_frequencies = frequencies; };
}

constexpr int64_t kR = 37, kW = 48, kT = 5;
constexpr int64_t kTooMany = (int64_t{1} << 22) + 1;

std::vector<Row> Table() {
  Attributes normed;
  normed.weight_norm = true;
  Attributes strided;
  strided.stride = 5;
  const Refusal rows = {"rows", Rows(kR, kTooMany), "must be at most 4194304"};
  const Refusal width = {"width", Widths(kW, kTooMany), "must be at most 4194304"};
  const auto wide = [](Call& call) { Widths(kW, 65536 * 8)(call), HeadWidth(8)(call); };
  return {
      {OpKind::kTimeProjection,
       {{F(1, kR, 1)}, {}, F(1, kR, kW), {}},
       {rows,
        {"odd width", Widths(kW, kW + 1), "must be even"},
        {"type", InputType(0, DType::kF64), "is F64"}}},
      {OpKind::kTimeEmbedder,
       {{F(1, kR, kW)}, {F(1, 8, kW), F(1, 1, 8), F(1, kT, 8), F(1, 1, kT)}, F(1, kR, kT), {}},
       {rows, width, {"type", InputType(0, DType::kF64), "is F64"}}},
      {OpKind::kLinear,
       {{A(2, kR, kW)}, {A(1, 8, kW), A(1, 1, 8)}, A(2, kR, 8), {}},
       {rows,
        width,
        {"gap", [](Call& call) { call.inputs[0].batch_stride += kW; }, "must follow one another"},
        {"bias", [](Call& call) { call.parameters[1].width = 9; }, "bias"}}},
      {OpKind::kAdalnProjection,
       {{F(1, kR, kW)}, {A(1, 8, kW), A(1, 1, 8)}, A(1, kR, 8), {}},
       {rows, width, {"type", InputType(0, DType::kI64), "is I64"}}},
      {OpKind::kRmsNorm,
       {{A(2, kR, kW)}, {A(1, 1, 16)}, A(2, kR, kW), {}},
       {rows,
        {"groups", [](Call& call) { call.parameters[0].width = 17; }, "multiple of the weight's"}}},
      {OpKind::kModulatedRmsNorm,
       {{A(2, kR, kW), A(1, kT, kW), A(1, kT, kW), Index(kR)}, {A(1, 1, kW)}, A(2, kR, kW), {}},
       {rows,
        width,
        {"table", Rows(kT, 65536), "rows of scale and shift, 65536, must be at most 65535"},
        {"index", InputType(3, DType::kF32), "index is F32"}}},
      {OpKind::kRope,
       {{A(2, kR, kW), Positions(kR)}, {}, A(2, kR, kW), Heads(16, 2)},
       {rows,
        {"heads", HeadWidth(17), "multiple of the head width"},
        {"no head", HeadWidth(0), "multiple of the head width"},
        {"channels", Frequencies(3), "must fit into the head width"},
        {"frequencies",
         [](Call& call) { Widths(kW, 6000)(call), HeadWidth(6000)(call), Frequencies(1000)(call); },
         "1000"},
        {"theta", [](Call& call) { call.attributes.rotary_theta = 0; }, "must be positive"}}},
      {OpKind::kAttention,
       {{A(2, kR, kW), A(2, kR, kW), A(2, kR, kW)}, {}, A(2, kR, kW), Heads(16)},
       {rows,
        {"heads", HeadWidth(17), "multiple of the head width"},
        {"wide head", [](Call& call) { Widths(kW, 136)(call), HeadWidth(136)(call); },
         "must be at most 128"},
        {"many heads", wide, "heads of all batch items, 131072, must be at most 65535"},
        {"keys", [](Call& call) { call.inputs[1].rows = kR - 1; }, "k is"}}},
      {OpKind::kGatedResidual,
       {{A(2, kR, kW), A(2, kR, kW), A(1, kT, kW), Index(kR)}, {}, A(2, kR, kW), {}},
       {rows, width, {"table", Rows(kT, 65536), "rows of gate, 65536, must be at most 65535"}}},
      {OpKind::kResidual, {{A(2, kR, kW), A(2, kR, kW)}, {}, A(2, kR, kW), {}}, {rows, width}},
      {OpKind::kSwiGlu,
       {{A(2, kR, kW)}, {}, A(2, kR, kW / 2), {}},
       {rows, {"odd width", Widths(kW, kW + 1), "must be even"}}},
      {OpKind::kScatterRows,
       {{A(2, 3, kW), A(2, 4, kW), A(2, kT, kW), Index(3), Index(4), Index(kT)},
        {},
        A(2, 12, kW),
        {}},
       {width,
        {"rows", [](Call& call) { call.output.rows = 13; }, "the output is"},
        {"many rows", [](Call& call) { Rows(kT, kTooMany)(call), Rows(12, kTooMany + 7)(call); },
         "must be at most 4194304"},
        {"indices", InputType(4, DType::kF32), "video_indices is F32"}}},
      {OpKind::kGatherRows,
       {{A(2, kR, kW), Index(kT)}, {}, A(2, kT, kW), {}},
       {rows, width, {"indices", InputType(1, DType::kF32), "indices is F32"}}},
      {OpKind::kCast, {{A(2, kR, kW)}, {}, A(2, kR, kW), {}}, {rows, width}},
      {OpKind::kGradSum, {{A(2, kR, kW), A(2, kR, kW)}, {}, A(2, kR, kW), {}}, {rows, width}},
      {OpKind::kDecoderLinear,
       {{F(2, kR, kW)}, {F(1, 8, kW), F(1, 1, 8)}, F(2, kR, 8), {}},
       {{"bias", [](Call& call) { call.parameters[1].width = 9; }, "bias"}}},
      {OpKind::kDecoderRmsNorm,
       {{F(2, kR, kW)}, {F(1, 1, kW)}, F(2, kR, kW), {}},
       {{"weight", [](Call& call) { call.parameters[0].width = 9; }, "weight is"}}},
      {OpKind::kDecoderHeadNorm,
       {{F(2, kR, kW)}, {}, F(2, kR, kW), Heads(16)},
       {{"heads", HeadWidth(17), "multiple of head_width"}}},
      {OpKind::kDecoderLayerNorm,
       {{F(2, kR, kW)}, {F(1, 1, kW), F(1, 1, kW)}, F(2, kR, kW), {}},
       {{"bias", [](Call& call) { call.parameters[1].width = 9; }, "bias is"}}},
      {OpKind::kDecoderRope,
       {{F(2, kR, kW), Positions(kR)}, {}, F(2, kR, kW), Heads(16, 2)},
       {{"heads", HeadWidth(17), "multiple of head_width"},
        {"channels", Frequencies(3), "at most head_width"},
        {"frequencies", Frequencies(65), "must be 1 to 64"},
        {"theta", [](Call& call) { call.attributes.rotary_theta = 0; }, "must be above 0"}}},
      {OpKind::kDecoderAttention,
       {{F(2, kR, kW), F(2, kR, kW), F(2, kR, kW)}, {}, F(2, kR, kW), Heads(16)},
       {{"heads", HeadWidth(17), "multiple of head_width"},
        {"many heads", wide, "the heads, 65536, must be at most 65535"}}},
      {OpKind::kDecoderSwiGlu,
       {{F(2, kR, kW)}, {}, F(2, kR, kW / 2), {}},
       {{"odd width", Widths(kW, kW + 1), "must be even"}}},
      {OpKind::kDecoderResidual,
       {{F(2, kR, kW), F(2, kR, kW)}, {F(1, 1, kW)}, F(2, kR, kW), {}},
       {{"scale", [](Call& call) { call.parameters[0].width = 9; }, "scale is"}}},
      {OpKind::kAppendTokens,
       {{F(2, kR, kW)}, {F(1, 1, 2 * kW)}, F(2, kR + 3, kW), {}},
       {{"tokens", [](Call& call) { call.parameters[0].width = kW + 1; }, "the width of x"}}},
      {OpKind::kConv1d,
       {{F(2, kR, kW)}, {F(1, 8, 3 * kW), F(1, 8, 1), F(1, 1, 8)}, F(2, kR, 8), normed},
       {{"taps", [](Call& call) { call.parameters[0] = F(1, 8, 2 * kW); }, "odd number of taps"},
        {"gap", [](Call& call) { ++call.parameters[0].row_stride; }, "must be dense"},
        {"dilation", [](Call& call) { call.attributes.dilation = 0; }, "must be above 0"}}},
      {OpKind::kConvTranspose1d,
       {{F(2, kR, kW)}, {F(1, kW, 8 * 9), F(1, kW, 1), F(1, 1, 8)}, F(2, 5 * kR, 8), strided},
       {{"taps", [](Call& call) { call.parameters[0] = F(1, kW, 8 * 4); }, "as many taps"},
        {"stride", [](Call& call) { call.attributes.stride = 0; }, "must be above 0"}}},
      {OpKind::kSnakeBeta,
       {{F(2, kR, kW)}, {F(1, 1, kW), F(1, 1, kW), F(1, 1, 12), F(1, 1, 12)}, F(2, kR, kW), {}},
       {{"taps", Widths(12, 11), "even number of taps"}, {"no row", Rows(kR, 0), "a row"}}},
      {OpKind::kMean,
       {{F(2, kR, kW), F(2, kR, kW)}, {}, F(2, kR, kW), {}},
       {{"many", [](Call& call) { call.inputs.resize(17, call.inputs[0]); },
         "the inputs, 17, must be at most 16"}}},
  };
}

absl::Status Check(const Operation& operation, Call call) {
  if (operation.precision() == Precision::kFloat32) {
    for (Tensor& tensor : call.inputs) {
      if (tensor.dtype == DType::kBF16) tensor.dtype = DType::kF32;
    }
    if (call.output.dtype == DType::kBF16) call.output.dtype = DType::kF32;
  }
  ForwardCall checked;
  checked.inputs = call.inputs;
  checked.parameters = call.parameters;
  checked.output = call.output;
  checked.attributes = call.attributes;
  return operation.Check(checked);
}

// Of every operation.
const std::vector<Refusal>& Common() {
  static const auto* const refusals = new std::vector<Refusal>{
      {"no input", [](Call& call) { call.inputs.clear(); }, "inputs"},
      {"a parameter more",
       [](Call& call) { call.parameters.resize(call.parameters.size() + 2, F(1, 1, 1)); },
       "parameters; it takes"},
      {"an output of integers", [](Call& call) { call.output.dtype = DType::kI64; }, "is I64"},
      {"an input of float16", InputType(0, DType::kF16), "is F16; accepted: "},
      {"a row too many", [](Call& call) { ++call.output.rows; }, "it must be ("},
      {"another batch", [](Call& call) { ++call.output.batch; }, "it must be ("},
  };
  return *refusals;
}

TEST(Refusals, EveryOperationOfEveryImplementation) {
  const Registry registry = MakeBuiltinRegistry();
  const std::vector<std::string> implementations = registry.Implementations(DeviceKind::kCuda);
  ASSERT_GE(implementations.size(), 7);  // golden, five providers, the candidate
  std::set<OpKind> seen;
  for (const Row& row : Table()) {
    seen.insert(row.op);
    for (const std::string& implementation : implementations) {
      const auto found = registry.Find(implementation, row.op, "", DeviceKind::kCuda);
      ASSERT_TRUE(found.ok()) << found.status();
      const Operation& operation = *(*found)->operation;
      const std::string name = absl::StrCat(implementation, " ", OpName(row.op));
      const absl::Status taken = Check(operation, row.call);
      // The provider's products need cuBLAS, which only a machine with a GPU has for certain.
      EXPECT_TRUE(taken.ok() || absl::StrContains(taken.message(), "libcublas"))
          << name << ": " << taken;
      std::vector<Refusal> refusals = row.refused;
      refusals.insert(refusals.end(), Common().begin(), Common().end());
      for (const Refusal& refusal : refusals) {
        Call call = row.call;
        refusal.change(call);
        const absl::Status refused = Check(operation, call);
        EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument)
            << name << ", " << refusal.what << ": " << refused;
        EXPECT_THAT(std::string(refused.message()), HasSubstr(refusal.message))
            << name << ", " << refusal.what;
      }
    }
  }
  for (int op = 0; op <= static_cast<int>(kLastOp); ++op) {
    EXPECT_TRUE(seen.count(static_cast<OpKind>(op))) << OpName(static_cast<OpKind>(op));
  }
}

}  // namespace
}  // namespace plumbline
