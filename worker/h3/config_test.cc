#include "worker/h3/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return *std::move(text);
}

nlohmann::json TinyJson() {
  return nlohmann::json::parse(ReadOrDie("tests/golden/checkpoint/transformer/config.json"));
}

std::string ErrorOf(const nlohmann::json& object) {
  const absl::StatusOr<TransformerConfig> config = ParseTransformerConfig(object.dump(), "c.json");
  if (config.ok()) return "accepted";
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(TransformerConfigTest, TinyIsTheBundledCheckpoints) {
  const absl::StatusOr<TransformerConfig> config =
      ParseTransformerConfig(TinyJson().dump(), "c.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, TinyConfig());
}

// The file's SHA-256 is the published one of the released revision.
TEST(TransformerConfigTest, ReleasedIsThePublishedOne) {
  const std::string text = ReadOrDie("worker/h3/testdata/released_config.json");
  ASSERT_EQ(Sha256Hex(text), "74c11bff524336576096993cbfcdcdc2ef4fa2fa4409df693bdcbc6c666282ae");
  const absl::StatusOr<TransformerConfig> config = ParseTransformerConfig(text, "c.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, ReleasedConfig());
}

TEST(TransformerConfigTest, CanonicalJsonReadsBackAndTellsConfigsApart) {
  const std::string canonical = CanonicalConfigJson(ReleasedConfig());
  const absl::StatusOr<TransformerConfig> config = ParseTransformerConfig(canonical, "c.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, ReleasedConfig());
  const nlohmann::json object = nlohmann::json::parse(canonical);
  for (const auto& [key, value] : object.items()) {
    if (key == "patch_size") continue;
    nlohmann::json changed = object;
    changed[key] = value.is_number_float() ? nlohmann::json(value.get<double>() / 2)
                                           : nlohmann::json(value.get<int64_t>() / 2);
    const absl::StatusOr<TransformerConfig> other =
        ParseTransformerConfig(changed.dump(), "c.json");
    if (key == "attention_head_dim") {  // Half of it no longer holds the rotary channels.
      EXPECT_FALSE(other.ok());
      continue;
    }
    ASSERT_TRUE(other.ok()) << key << ": " << other.status();
    EXPECT_NE(*other, ReleasedConfig()) << key;
    EXPECT_NE(CanonicalConfigJson(*other), canonical) << key;
  }
}

TEST(TransformerConfigTest, EveryKeyIsNeeded) {
  const nlohmann::json tiny = TinyJson();
  for (const auto& [key, value] : tiny.items()) {
    nlohmann::json object = tiny;
    object.erase(key);
    if (key[0] == '_') {
      EXPECT_EQ(ErrorOf(object), "accepted");
    } else {
      EXPECT_THAT(ErrorOf(object), AllOf(HasSubstr("c.json"), HasSubstr(key)));
    }
  }
}

TEST(TransformerConfigTest, SizesHaveLimitsAndTypes) {
  const nlohmann::json tiny = TinyJson();
  for (const auto& [key, value] : tiny.items()) {
    if (!value.is_number()) continue;
    for (const nlohmann::json& bad :
         {nlohmann::json(0), nlohmann::json(-1), nlohmann::json("7"), nlohmann::json(nullptr),
          nlohmann::json(std::numeric_limits<int64_t>::max()), nlohmann::json({1})}) {
      nlohmann::json object = tiny;
      object[key] = bad;
      EXPECT_THAT(ErrorOf(object), AllOf(HasSubstr(key), HasSubstr("accepted"))) << bad;
    }
  }
}

TEST(TransformerConfigTest, SizesMustFitEachOther) {
  nlohmann::json object = TinyJson();
  object["rope_freq_dim"] = 22;
  EXPECT_THAT(ErrorOf(object), AllOf(HasSubstr("rope_freq_dim"), HasSubstr("132 channels"),
                                     HasSubstr("at most attention_head_dim / 6 = 21")));
  object = TinyJson();
  object["attention_head_dim"] = 127;
  EXPECT_THAT(ErrorOf(object), HasSubstr("attention_head_dim: 127 is odd"));
  object = TinyJson();
  object["freq_dim"] = 255;
  EXPECT_THAT(ErrorOf(object), HasSubstr("freq_dim: 255 is odd"));
  object = TinyJson();
  object["patch_size"] = {2, 2, 2};
  EXPECT_THAT(ErrorOf(object), AllOf(HasSubstr("patch_size"), HasSubstr("accepted: [1, 2, 2]")));
  object["patch_size"] = {1, 2};
  EXPECT_THAT(ErrorOf(object), HasSubstr("patch_size"));
}

TEST(TransformerConfigTest, RefusesOtherModelsAndUnknownKeys) {
  nlohmann::json object = TinyJson();
  object["_class_name"] = "WanTransformer3DModel";
  EXPECT_THAT(ErrorOf(object), AllOf(HasSubstr("_class_name"), HasSubstr("WanTransformer3DModel"),
                                     HasSubstr("accepted: MiniMaxH3Transformer3DModel")));
  object = TinyJson();
  object["window_size"] = 7;
  EXPECT_THAT(ErrorOf(object), HasSubstr("window_size"));
  EXPECT_THAT(ErrorOf(nlohmann::json::array()), HasSubstr("c.json"));
  EXPECT_FALSE(ParseTransformerConfig("{", "c.json").ok());
}

TEST(TransformerConfigTest, ValidationListsEveryViolation) {
  TransformerConfig config = TinyConfig();
  config.num_layers = 0;
  config.norm_eps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(GetFieldViolations(ValidateTransformerConfig(config, "c.json")), SizeIs(2));
  EXPECT_TRUE(ValidateTransformerConfig(ReleasedConfig(), "c.json").ok());
}

}  // namespace
}  // namespace plumbline::h3
