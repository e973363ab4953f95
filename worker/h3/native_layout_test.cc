// The bundled checkpoint in MiniMax's own layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "common/files.h"
#include "worker/checkpoint/testing/checkpoint_writer.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/native_config.h"
#include "worker/h3/stored_tensors.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using testing::BundledTensors;
using ::testing::HasSubstr;
using testing::OwnedTensors;
using testing::ToNative;
using testing::WriteCheckpoint;

class NativeLayoutTest : public ::testing::Test {
 protected:
  NativeLayoutTest() {
    std::string pattern = ::testing::TempDir() + "/native.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~NativeLayoutTest() override { std::filesystem::remove_all(root_); }

  std::shared_ptr<const WeightSource> OpenOrDie(absl::string_view spec) {
    absl::StatusOr<std::shared_ptr<const WeightSource>> weights = OpenCheckpoint(spec, {root_});
    EXPECT_TRUE(weights.ok()) << weights.status();
    return weights.ok() ? *std::move(weights) : nullptr;
  }
  std::string ErrorOf(absl::string_view spec) {
    return std::string(OpenCheckpoint(spec, {root_}).status().message());
  }

  std::string root_;
};

TEST_F(NativeLayoutTest, HasTheParametersAndDigestOfTheReleasedLayout) {
  WriteCheckpoint(root_ + "/H3/FL2VA", ToNative(BundledTensors()), 3, "model",
                  testing::NativeConfig(), /*index=*/false);
  WriteCheckpoint(root_ + "/one", ToNative(BundledTensors()), 1, "model", testing::NativeConfig());
  // Native tensors under the released layout's file names, with an index: still what they are.
  WriteCheckpoint(root_ + "/misnamed", ToNative(BundledTensors()), 2, "diffusion_pytorch_model",
                  testing::BundledConfig());
  const auto expected = OpenOrDie("synthetic:tiny");
  for (const char* spec : {"H3", "H3/FL2VA", "one", "misnamed"}) {
    SCOPED_TRACE(spec);
    const auto native = OpenOrDie(spec);
    ASSERT_NE(native, nullptr);
    EXPECT_EQ(native->config(), expected->config());
    for (const ParameterSpec& parameter : expected->parameters()) {
      const absl::StatusOr<WeightView> a = native->Get(parameter.name);
      ASSERT_TRUE(a.ok()) << a.status();
      EXPECT_EQ(a->Bytes(), expected->Get(parameter.name)->Bytes()) << parameter.name;
    }
    EXPECT_EQ(*native->Digest(), *expected->Digest());
    EXPECT_EQ(*native->Identity(), "sha256:" + *expected->Digest());
  }
  EXPECT_EQ(OpenOrDie("H3")->Description(), "native layout, 3 shards");
  EXPECT_EQ(OpenOrDie("one")->Description(), "native layout, 1 file");
}

// What loaders of other engines did with it.
TEST_F(NativeLayoutTest, RowsLeftAsTheyAreGiveAnotherDigest) {
  OwnedTensors interleaved = BundledTensors(), swapped = BundledTensors();
  testing::LeaveQkvInterleaved(&interleaved);
  testing::SwapFfnHalves(&swapped);
  WriteCheckpoint(root_ + "/a", interleaved, 1, "diffusion_pytorch_model",
                  testing::BundledConfig());
  WriteCheckpoint(root_ + "/b", swapped, 1, "diffusion_pytorch_model", testing::BundledConfig());
  const std::string right = *OpenOrDie("synthetic:tiny")->Digest();
  EXPECT_NE(*OpenOrDie("a")->Digest(), right);
  EXPECT_NE(*OpenOrDie("b")->Digest(), right);
}

TEST_F(NativeLayoutTest, WhatIsMissingOrTooMuchIsNamedAsItIsStored) {
  OwnedTensors tensors = ToNative(BundledTensors());
  tensors.pop_back();  // rope.inv_freq may be missing.
  WriteCheckpoint(root_ + "/c", tensors, 1, "model", testing::NativeConfig());
  EXPECT_NE(OpenOrDie("c"), nullptr);
  testing::FindTensor("blocks.1.attn.qkv_proj.weight", &tensors)->spec.name = "blocks.1.attn.qkv";
  WriteCheckpoint(root_ + "/c", tensors, 1, "model", testing::NativeConfig());
  EXPECT_THAT(ErrorOf("c"),
              AllOf(HasSubstr("\"blocks.1.attn.qkv_proj.weight\": is missing; the configuration "
                              "asks for BF16 (768, 128)"),
                    HasSubstr("\"blocks.1.attn.qkv\": BF16 (768, 128) is no tensor of")));
  WriteCheckpoint(root_ + "/d", ToNative(BundledTensors()), 3, "model", testing::NativeConfig(),
                  /*index=*/false);
  unlink((root_ + "/d/transformer/model-00002-of-00003.safetensors").c_str());
  EXPECT_THAT(ErrorOf("d"), HasSubstr("transformer/model-00002-of-00003.safetensors: is missing"));
}

TEST(NativeConfigTest, KeysThatAreMissingAreTheReleasedModels) {
  EXPECT_EQ(*ParseNativeConfig(testing::NativeConfig(), "c"), TinyConfig());
  EXPECT_EQ(*ParseNativeConfig(R"({"hidden_size": 5376, "num_layers": 50, "ffn_hidden_size": 14336,
                                   "num_attention_heads": 56, "whatever": {"a": [1]}})",
                               "c"),
            ReleasedConfig());
  EXPECT_TRUE(IsNativeConfig(testing::NativeConfig()));
  EXPECT_FALSE(IsNativeConfig(testing::BundledConfig()));
  EXPECT_FALSE(IsNativeConfig("["));
  EXPECT_THAT(ParseNativeConfig(R"({"ffn_hidden_size": 1})", "c").status().message(),
              HasSubstr("hidden_size"));
}

}  // namespace
}  // namespace plumbline::h3
