// Which calls a GPU accepts is known without one.
#include "kernels/cuda/operation_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "kernels/candidate/cpu/random_case.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const CapturedNode& node, const std::function<void(CapturedNode&)>& spoil,
                   Precision precision = Precision::kMixed) {
  CapturedNode spoilt;
  spoilt.inputs = node.inputs;
  spoilt.parameters = node.parameters;
  spoilt.output = node.output;
  spoilt.attributes = node.attributes;
  spoil(spoilt);
  ForwardCall call;
  call.inputs = spoilt.inputs;
  call.parameters = spoilt.parameters;
  call.output = spoilt.output;
  call.attributes = spoilt.attributes;
  return CheckCall("candidate", precision, node.op, call);
}

TEST(OperationChecks, AcceptEveryOperation) {
  for (const RandomCase& random_case : MakeRandomCases(CaseSizes())) {
    EXPECT_TRUE(Check(random_case.node, [](CapturedNode&) {}).ok()) << random_case.node.name;
  }
}

TEST(OperationChecks, AcceptEveryOperationInFloat32) {
  for (const RandomCase& random_case : MakeRandomCases(CaseSizes())) {
    const auto widen = [](CapturedNode& node) {
      node.output.dtype = DType::kF32;
      for (Tensor& input : node.inputs) {
        if (input.dtype == DType::kBF16) input.dtype = DType::kF32;
      }
    };
    EXPECT_TRUE(Check(random_case.node, widen, Precision::kFloat32).ok()) << random_case.node.name;
    if (random_case.node.op == OpKind::kTimeEmbedder) continue;  // float32 in either
    const bool widens = random_case.node.output.dtype == DType::kBF16;
    EXPECT_EQ(Check(
                  random_case.node, [](CapturedNode&) {}, Precision::kFloat32)
                  .ok(),
              !widens && random_case.node.inputs[0].dtype == DType::kF32)
        << random_case.node.name;
  }
}

TEST(OperationChecks, RefuseWrongCountsTypesAndShapes) {
  for (const RandomCase& random_case : MakeRandomCases(CaseSizes())) {
    const CapturedNode& node = random_case.node;
    const absl::Status fewer = Check(node, [](CapturedNode& call) { call.inputs.pop_back(); });
    EXPECT_EQ(fewer.code(), absl::StatusCode::kInvalidArgument) << node.name;
    EXPECT_THAT(std::string(fewer.message()), HasSubstr("inputs; it takes")) << node.name;
    const absl::Status type =
        Check(node, [](CapturedNode& call) { call.inputs[0].dtype = DType::kF16; });
    EXPECT_THAT(std::string(type.message()), HasSubstr("is F16; accepted: ")) << node.name;
    const absl::Status shape = Check(node, [](CapturedNode& call) { ++call.output.rows; });
    EXPECT_THAT(std::string(shape.message()), HasSubstr("it must be (")) << node.name;
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      EXPECT_FALSE(Check(node, [i](CapturedNode& call) { ++call.parameters[i].batch; }).ok())
          << node.name << ", parameter " << i;
    }
  }
}

TEST(OperationChecks, RefuseHeadsThatNoKernelHas) {
  CaseSizes sizes;
  sizes.head_width = 136;
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    if (random_case.node.op != OpKind::kAttention) continue;
    const absl::Status status = Check(random_case.node, [](CapturedNode&) {});
    EXPECT_THAT(std::string(status.message()), HasSubstr("must be at most 128"));
  }
}

}  // namespace
}  // namespace plumbline
