#include "worker/h3/parameters.h"

#include <gtest/gtest.h>

#include <set>

#include "common/safetensors.h"

namespace plumbline::h3 {
namespace {

TEST(ParametersTest, AreThoseOfTheBundledCheckpoint) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(
      "tests/golden/checkpoint/transformer/diffusion_pytorch_model.safetensors.index.json");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<ParameterSpec> parameters = TransformerParameters(TinyConfig());
  EXPECT_EQ(parameters.size(), file->tensors().size());
  int64_t bytes = 0;
  for (const ParameterSpec& parameter : parameters) {
    const TensorInfo* tensor = file->Find(parameter.name);
    ASSERT_NE(tensor, nullptr) << parameter.name;
    EXPECT_EQ(parameter.shape, tensor->shape) << parameter.name;
    EXPECT_EQ(parameter.dtype, tensor->dtype) << parameter.name;
    bytes += tensor->size_bytes();
  }
  EXPECT_EQ(TotalParameterBytes(parameters), bytes);
}

// The published figures of the released model.
TEST(ParametersTest, ReleasedSizes) {
  const std::vector<ParameterSpec> parameters = TransformerParameters(ReleasedConfig());
  EXPECT_EQ(parameters.size(), 50 * 12 + 2 * 10 + 1 + 17);
  std::set<std::string> names;
  int64_t values = 0;
  int64_t adaln_values = 0;
  for (const ParameterSpec& parameter : parameters) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " is there twice";
    values += parameter.NumElements();
    if (parameter.name.find("adaln_proj") != std::string::npos) {
      adaln_values += parameter.NumElements();
    }
  }
  EXPECT_NEAR(values, 33e9, 0.5e9);
  EXPECT_NEAR(adaln_values, 13e9, 0.1e9);
  EXPECT_NEAR(TotalParameterBytes(parameters), 66.3e9, 0.05e9);
}

TEST(ParametersTest, BlocksHaveTheLeavesOfTheCaptures) {
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open("tests/golden/block0_fp32_cpu.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<ParameterSpec> leaves = BlockParameters(TinyConfig(), "");
  EXPECT_EQ(leaves.size(), 12);
  for (const ParameterSpec& leaf : leaves) {
    const TensorInfo* captured = file->Find("leaf." + leaf.name);
    ASSERT_NE(captured, nullptr) << leaf.name;
    EXPECT_EQ(leaf.shape, captured->shape) << leaf.name;
  }
  EXPECT_EQ(RefinerBlockParameters(TinyConfig(), "").size(), 10);
  EXPECT_EQ(BlockParameters(TinyConfig(), BlockPrefix(1)).front().name,
            "transformer_blocks.1.norm1.weight");
}

}  // namespace
}  // namespace plumbline::h3
