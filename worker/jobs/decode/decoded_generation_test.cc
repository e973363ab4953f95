#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "worker/jobs/decode/decode.h"
#include "worker/jobs/generation/fixture.h"

namespace plumbline::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A generation of 22 frames is decoded behind its last step; the run decoded by itself gives the
// same; and an attempt that only decodes reports everything.
class DecodedGenerationTest : public GenerationTest {
 protected:
  DecodedGenerationTest() : checkpoints_({"/"}) {
    environment_.checkpoints = &checkpoints_;
    environment_.generation.should_yield = [this] { return yield_; };
  }

  v1::JobSpec LongSpec() {
    v1::JobSpec spec = Spec("golden");
    spec.set_checkpoint(std::filesystem::absolute("tests/golden/checkpoint"));
    spec.mutable_generation()->mutable_contract()->set_num_frames(22);
    spec.mutable_generation()->mutable_contract()->set_num_inference_steps(3);
    spec.mutable_generation()->set_latents_only(latents_only_);
    return spec;
  }

  CheckpointCache checkpoints_;
  bool yield_ = false;
  bool latents_only_ = false;
};

TEST_F(DecodedGenerationTest, IsDecodedUnderTheContractsDecoder) {
  v1::JobSpec spec = LongSpec();
  spec.mutable_generation()->mutable_contract()->set_decoder("candidate");
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::GenerationReport& report = result->report.generation();
  EXPECT_EQ(report.not_decoded(), "");
  EXPECT_EQ(report.decoded().composition(), "candidate");
  EXPECT_EQ(report.decoded().frames(), 22);
  EXPECT_EQ(report.decoded().samples(), 5 * 800);
  EXPECT_TRUE(report.media_pending());
  std::vector<std::string> names;
  for (const OutputFile& file : result->files) names.push_back(file.file_name);
  EXPECT_THAT(
      names, ElementsAre("latents-42.safetensors", "frames-42.safetensors", "kept-42.safetensors"));

  // The run by itself.
  v1::JobSpec alone;
  alone.set_checkpoint(spec.checkpoint());
  alone.set_composition("candidate");
  alone.mutable_decode()->set_run(report.run());
  *alone.mutable_decode()->mutable_generation() = spec.generation();
  environment_.output_folder += "_alone";
  std::filesystem::create_directories(environment_.output_folder);
  const auto decoded = RunDecode(alone, "", files_, environment_);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->report.decode().source(), report.run());
  EXPECT_EQ(decoded->report.decode().units_kept(), 2) << "the generation has decoded it";
  const auto digest_of = [](const v1::DecodeReport& of, const std::string& name) {
    for (const v1::TensorDigest& tensor : of.tensors()) {
      if (tensor.name() == name) return tensor.sha256();
    }
    return std::string();
  };
  for (const std::string name : {"frames", "samples"}) {
    EXPECT_EQ(digest_of(decoded->report.decode(), name), digest_of(report.decoded(), name));
    EXPECT_NE(digest_of(report.decoded(), name), "");
  }

  // And its latents from the file.
  v1::JobSpec from_file;
  from_file.set_checkpoint(spec.checkpoint());
  from_file.set_composition("candidate");
  from_file.mutable_decode();
  const auto again = RunDecode(from_file, result->files[0].path, {}, environment_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->report.decode().units_kept(), 0) << "a file's is another run";
  EXPECT_EQ(digest_of(again->report.decode(), "frames"), digest_of(report.decoded(), "frames"));
}

TEST_F(DecodedGenerationTest, AnAttemptThatOnlyDecodesReportsAll) {
  latents_only_ = true;
  const auto first = Run(LongSpec());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->report.generation().has_decoded());
  EXPECT_EQ(first->report.generation().not_decoded(), "");
  latents_only_ = false;
  environment_.generation.attempt = 2;
  const auto second = Run(LongSpec());
  ASSERT_TRUE(second.ok()) << second.status();
  const v1::GenerationReport& report = second->report.generation();
  EXPECT_EQ(report.steps_replayed(), 2);
  EXPECT_EQ(report.decoded().frames(), 22);
  EXPECT_GT(report.trace().groups_size(), 0);
  EXPECT_EQ(LatentDigests(*second), LatentDigests(*first));
}

TEST_F(DecodedGenerationTest, WhatWouldKeepItFromBeingDecodedIsFoundFirst) {
  v1::JobSpec spec = LongSpec();
  spec.mutable_generation()->mutable_contract()->set_sampling_rate(16000);
  EXPECT_THAT(Run(spec).status().message(), HasSubstr("sampling_rate: 16000"));
  spec = LongSpec();
  spec.mutable_generation()->mutable_contract()->set_decoder("golden+candidate:nothing");
  EXPECT_THAT(Run(spec).status().message(), HasSubstr("contract.decoder"));
  EXPECT_TRUE(steps_.empty()) << "a step was computed";
}

}  // namespace
}  // namespace plumbline::jobs
