#include "worker/h3/generation_contract.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/sha256.h"
#include "common/status.h"
#include "proto/plumbline/v1/generation.pb.h"

namespace plumbline::h3 {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr char kReleased[] = R"({"seeds": [42, 43, 44], "num_frames": 124, "height": 768,
    "width": 1344, "num_inference_steps": 50})";

constexpr char kEveryField[] = R"({"seeds": [18446744073709551615, 0], "num_frames": 20,
    "height": 96, "width": 128, "num_inference_steps": 6, "video_shift": 10.5, "audio_shift": 2,
    "fps": 12.5, "sampling_rate": 16000, "rng": "torch-cpu", "decoder": "provider/default",
    "bounds": {"psnr_db_min": 25, "ssim_min": 0.5, "temporal_rmse_max": 0.1,
               "audio_relative_l2_max": 0.2},
    "num_audio_latents": 11,
    "checkpoint_sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "conditioning_sha256": "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"})";

TEST(GenerationContractTest, DefaultsAreTheReleasedCase) {
  const absl::StatusOr<GenerationContract> contract = ParseGenerationContract(kReleased, "c");
  ASSERT_TRUE(contract.ok()) << contract.status();
  EXPECT_THAT(contract->seeds, ElementsAre(42, 43, 44));
  EXPECT_EQ(contract->AlignedFrames(), 124);
  EXPECT_EQ(contract->LatentFrames(), 37);
  EXPECT_EQ(contract->LatentHeight(), 48);
  EXPECT_EQ(contract->LatentWidth(), 84);
  EXPECT_EQ(contract->num_audio_latents, 207);
  EXPECT_EQ(contract->video_shift, 12);
  EXPECT_EQ(contract->audio_shift, 3);
  EXPECT_EQ(contract->fps, 24);
  EXPECT_EQ(contract->sampling_rate, 32000);
  EXPECT_EQ(FormatRng(contract->rng), "torch-cuda:132");
  EXPECT_EQ(contract->decoder, "golden");
  EXPECT_EQ(contract->bounds.psnr_db_min, 30);
  EXPECT_EQ(contract->bounds.ssim_min, 0.99);
  EXPECT_EQ(contract->bounds.temporal_rmse_max, 0.01);
  EXPECT_EQ(contract->bounds.audio_relative_l2_max, 0.05);
  EXPECT_EQ(contract->checkpoint_sha256, "");
  EXPECT_TRUE(CheckContractFits(*contract, ReleasedConfig(), "c").ok());
}

TEST(GenerationContractTest, ReadsEveryField) {
  const absl::StatusOr<GenerationContract> contract = ParseGenerationContract(kEveryField, "c");
  ASSERT_TRUE(contract.ok()) << contract.status();
  EXPECT_THAT(contract->seeds, ElementsAre(18446744073709551615u, 0));
  EXPECT_EQ(contract->AlignedFrames(), 22);
  EXPECT_EQ(contract->LatentFrames(), 7);
  EXPECT_EQ(contract->fps, 12.5);
  EXPECT_EQ(contract->rng.kind, Rng::Kind::kTorchCpu);
  EXPECT_EQ(contract->num_audio_latents, 11);
  EXPECT_EQ(contract->bounds.ssim_min, 0.5);
  EXPECT_EQ(contract->conditioning_sha256.substr(0, 4), "fedc");
}

// The names, and what protobuf makes of the values, agree with the message of the API.
TEST(GenerationContractTest, IsTheMessageOfTheApi) {
  for (const char* text : {kReleased, kEveryField}) {
    const std::string canonical = CanonicalContractJson(*ParseGenerationContract(text, "c"));
    v1::GenerationContract message;
    const auto parsed = google::protobuf::util::JsonStringToMessage(canonical, &message);
    ASSERT_TRUE(parsed.ok()) << parsed.ToString();
    // No field of the message is missing from ours.
    const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
    const nlohmann::json object = nlohmann::json::parse(canonical);
    EXPECT_EQ(object.size(), descriptor->field_count());
    for (int i = 0; i < descriptor->field_count(); ++i) {
      EXPECT_TRUE(object.contains(descriptor->field(i)->name())) << descriptor->field(i)->name();
    }
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    options.always_print_primitive_fields = true;
    std::string printed;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(message, &printed, options).ok());
    const absl::StatusOr<GenerationContract> back = ParseGenerationContract(printed, "c");
    ASSERT_TRUE(back.ok()) << back.status() << printed;
    EXPECT_EQ(CanonicalContractJson(*back), canonical);
  }
}

TEST(GenerationContractTest, EqualMeaningIsEqualDigest) {
  const GenerationContract contract = *ParseGenerationContract(kReleased, "c");
  const GenerationContract spelled_out = *ParseGenerationContract(
      R"({"width": 1344, "height": 768, "seeds": ["42", 43, "44"], "num_inference_steps": 50,
          "num_frames": 124, "fps": 24.0, "rng": "", "num_audio_latents": 207,
          "bounds": {"ssim_min": 0.99}})",
      "c");
  EXPECT_EQ(CanonicalContractJson(contract), CanonicalContractJson(spelled_out));
  EXPECT_EQ(ContractDigest(contract), Sha256Hex(CanonicalContractJson(contract)));
  EXPECT_EQ(CanonicalContractJson(contract),
            R"({"audio_shift":3.0,"bounds":{"audio_relative_l2_max":0.05,"psnr_db_min":30.0,)"
            R"("ssim_min":0.99,"temporal_rmse_max":0.01},"checkpoint_sha256":"",)"
            R"("conditioning_sha256":"","decoder":"golden","fps":24.0,"height":768,)"
            R"("num_audio_latents":207,"num_frames":124,"num_inference_steps":50,)"
            R"("rng":"torch-cuda:132","sampling_rate":32000,"seeds":[42,43,44],)"
            R"("video_shift":12.0,"width":1344})");
}

TEST(GenerationContractTest, AnyOtherFieldIsAnotherDigest) {
  const nlohmann::json changes = nlohmann::json::parse(R"({"seeds": [42], "num_frames": 141,
      "height": 736, "width": 1312, "num_inference_steps": 49, "video_shift": 11,
      "audio_shift": 2, "fps": 25, "sampling_rate": 48000, "rng": "torch-cuda:78",
      "decoder": "provider", "bounds": {"ssim_min": 0.98}, "num_audio_latents": 206,
      "checkpoint_sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "conditioning_sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"})");
  const std::string digest = ContractDigest(*ParseGenerationContract(kReleased, "c"));
  for (const auto& [name, value] : changes.items()) {
    nlohmann::json object = nlohmann::json::parse(kReleased);
    object[name] = value;
    const absl::StatusOr<GenerationContract> changed = ParseGenerationContract(object.dump(), "c");
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_NE(ContractDigest(*changed), digest) << name;
  }
}

// The released contract with one field replaced, or removed where `value` is not JSON.
absl::Status StatusWith(const std::string& field, const std::string& value) {
  nlohmann::json object = nlohmann::json::parse(kReleased);
  object.erase(field);
  if (!value.empty()) object[field] = nlohmann::json::parse(value);
  return ParseGenerationContract(object.dump(), "c.json").status();
}

TEST(GenerationContractTest, RefusesBadFieldsByName) {
  const std::string digits(63, 'a');
  const struct {
    std::string field;
    std::vector<std::string> values;  // "" removes the field.
  } cases[] = {
      {"num_frames", {"", "0", "-5", "65536", "1.5", "\"124\"", "null", "[]"}},
      {"height", {"", "0", "760", "-32", "65568", "9223372036854775808"}},
      {"width", {"", "1345", "1e3"}},
      {"num_inference_steps", {"", "1", "10001"}},
      {"video_shift", {"0", "-1", "1001", "\"12\"", "null"}},
      {"audio_shift", {"0", "0.2"}},
      {"fps", {"0", "-24", "1001"}},
      {"sampling_rate", {"0", "32000.5", "1048577"}},
      {"rng", {"\"torch\"", "\"torch-cuda:0\"", "7"}},
      {"decoder", {"7", "\"" + std::string(5000, 'x') + "\""}},
      {"num_audio_latents", {"0", "-1", "2097153"}},
      {"checkpoint_sha256", {"\"" + digits + "\"", "\"" + digits + "A\"", "\"" + digits + "g\""}},
      {"conditioning_sha256", {"\"x\"", "1"}},
      {"bounds", {"7", "[]", "null"}},
  };
  for (const auto& c : cases) {
    for (const std::string& value : c.values) {
      const absl::Status status = StatusWith(c.field, value);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.field << " " << value;
      EXPECT_THAT(GetFieldViolations(status),
                  ElementsAre(Field(&FieldViolation::field, "c.json: " + c.field)))
          << value;
      EXPECT_THAT(std::string(status.message()), HasSubstr("accepted: ")) << value;
    }
  }
}

TEST(GenerationContractTest, RefusesBadSeeds) {
  std::string many = "[0";
  for (size_t i = 1; i <= kMaxSeeds; ++i) many += "," + std::to_string(i);
  for (const std::string value :
       {"", "[]", "42", "null", "[-1]", "[1.5]", "[\"-1\"]", "[\"\"]", "[\" 1\"]", "[\"0x1\"]",
        "[18446744073709551616]", "[\"18446744073709551616\"]", "[[1]]"}) {
    const absl::Status status = StatusWith("seeds", value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr("c.json")) << value;
  }
  EXPECT_FALSE(StatusWith("seeds", many + "]").ok());
  EXPECT_THAT(std::string(StatusWith("seeds", "[1, 2, \"1\"]").message()),
              HasSubstr("c.json: seeds[2]: 1 is in the list before"));
}

TEST(GenerationContractTest, RefusesBadBounds) {
  EXPECT_THAT(std::string(StatusWith("bounds", R"({"ssim_min": 1.5})").message()),
              HasSubstr("c.json: bounds: ssim_min: "));
  EXPECT_THAT(std::string(StatusWith("bounds", R"({"psnr": 30})").message()),
              HasSubstr("c.json: bounds: \"psnr\": no limit; accepted: psnr_db_min"));
}

TEST(GenerationContractTest, NamesEveryFaultAtOnce) {
  const absl::Status status =
      ParseGenerationContract(R"({"numFrames": 124, "height": 31, "width": 96})", "c").status();
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  for (const char* field :
       {"c: \"numFrames\"", "c: seeds", "c: num_frames", "c: height", "c: num_inference_steps"}) {
    EXPECT_THAT(violations, Contains(Field(&FieldViolation::field, field)));
  }
  EXPECT_EQ(violations.size(), 5);
}

TEST(GenerationContractTest, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "7", "{", "{\"seeds\": [1], \"seeds\": [2]}", "null"}) {
    EXPECT_EQ(ParseGenerationContract(text, "c").status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(GenerationContractTest, DurationLimitsHoldForTheReleasedModelAlone) {
  GenerationContract contract = *ParseGenerationContract(kReleased, "c");
  // 108 rounds up to 124; 345 is the last that is 17 n + 5.
  for (const auto& [frames, accepted] :
       {std::pair(107, false), std::pair(108, true), std::pair(345, true), std::pair(346, false)}) {
    contract.num_frames = frames;
    EXPECT_EQ(CheckContractFits(contract, ReleasedConfig(), "c").ok(), accepted) << frames;
    EXPECT_TRUE(CheckContractFits(contract, TinyConfig(), "c").ok()) << frames;
  }
  EXPECT_THAT(std::string(CheckContractFits(contract, ReleasedConfig(), "c").message()),
              HasSubstr("c: num_frames: 346 frames, rounded up to 362, are no duration"));
}

TEST(GenerationContractTest, OtherFilesThanNamedAreRefused) {
  GenerationContract contract = *ParseGenerationContract(kReleased, "c");
  const std::string a(64, 'a'), b(64, 'b');
  EXPECT_TRUE(CheckContractDigests(contract, a, b, "c").ok());
  contract.checkpoint_sha256 = a;
  EXPECT_TRUE(CheckContractDigests(contract, a, b, "c").ok());
  contract.conditioning_sha256 = a;
  const std::vector<FieldViolation> violations =
      GetFieldViolations(CheckContractDigests(contract, a, b, "c"));
  EXPECT_THAT(violations, ElementsAre(Field(&FieldViolation::field, "c: conditioning_sha256")));
}

}  // namespace
}  // namespace plumbline::h3
