#include "kernels/builtin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline {
namespace {

TEST(BuiltinTest, HasEveryImplementationWithEveryOperation) {
  const Registry registry = MakeBuiltinRegistry();
  const std::vector<std::string> expected = {
      "golden",
      "provider/default",
      "provider/sdpa-flash",
      "provider/sdpa-efficient",
      "provider/sdpa-math",
      "provider/blas-cublaslt",
      "candidate",
  };
  EXPECT_EQ(registry.Implementations(DeviceKind::kCpu), expected);
  for (const std::string& implementation : expected) {
    for (int op = 0; op <= static_cast<int>(kLastOp); ++op) {
      EXPECT_TRUE(registry.Find(implementation, static_cast<OpKind>(op), "", DeviceKind::kCpu).ok())
          << implementation << ", " << OpName(static_cast<OpKind>(op));
    }
  }
}

// A variant shares the operations that it does not change, which tells a report what it changes.
TEST(BuiltinTest, AVariantChangesOneChoice) {
  const Registry registry = MakeBuiltinRegistry();
  const auto changed = [&](const std::string& variant) {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(kLastOp); ++i) {
      const OpKind op = static_cast<OpKind>(i);
      if (registry.Find(variant, op, "", DeviceKind::kCpu).value()->operation !=
          registry.Find("provider/default", op, "", DeviceKind::kCpu).value()->operation) {
        names.emplace_back(OpName(op));
      }
    }
    return names;
  };
  const std::vector<std::string> attention = {std::string(OpName(OpKind::kAttention))};
  const std::vector<std::string> gemms = {
      std::string(OpName(OpKind::kTimeEmbedder)), std::string(OpName(OpKind::kLinear)),
      std::string(OpName(OpKind::kAdalnProjection)), std::string(OpName(OpKind::kDecoderLinear))};
  EXPECT_EQ(changed("provider/sdpa-flash"), attention);
  EXPECT_EQ(changed("provider/sdpa-efficient"), attention);
  EXPECT_EQ(changed("provider/sdpa-math"), attention);
  EXPECT_EQ(changed("provider/blas-cublaslt"), gemms);
}

TEST(BuiltinDeathTest, AFamilyThatIsThereAlreadyIsNotIgnored) {
  Registry registry = MakeBuiltinRegistry();
  EXPECT_DEATH(RegisterGoldenCpu(registry), "'golden' already has an operation");
  EXPECT_DEATH(RegisterProviderCpu(registry), "'provider/default' already has an operation");
  EXPECT_DEATH(RegisterCandidateCpu(registry), "'candidate' already has an operation");
}

}  // namespace
}  // namespace plumbline
