#include "worker/jobs/media_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/jobs/kept_media.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/mp4_writer.h"
#include "worker/media/tensor_media.h"

namespace plumbline::jobs {
namespace {

using ::testing::HasSubstr;

class MediaComparisonTest : public ::testing::Test {
 protected:
  MediaComparisonTest() {
    std::string pattern = ::testing::TempDir() + "/comparison_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    environment_.output_folder = folder_;
    environment_.context.check_cancelled = [] { return absl::OkStatus(); };
    environment_.context.on_progress = [this](const v1::Progress& progress) {
      progress_.push_back(progress);
    };
  }
  ~MediaComparisonTest() override { std::filesystem::remove_all(folder_); }

  // 9 frames of one brightness, and a second of sound.
  v1::InputFile Write(const std::string& name, float brightness, int64_t frames = 9) {
    const media::VideoFormat format = {frames, 16, 16, 24};
    const media::AudioTrack audio = {1000, 2, std::vector<float>(2000, 0.5f)};
    auto writer = media::TensorMediaWriter::Create(folder_ + "/" + name, {}, &format, &audio);
    EXPECT_TRUE(writer.ok()) << writer.status();
    const std::vector<float> values(3 * 16 * 16, brightness);
    media::VideoFrame frame;
    frame.values = values;
    for (int64_t i = 0; i < frames; ++i) EXPECT_TRUE(writer->AddFrame(frame).ok());
    EXPECT_TRUE(writer->Finish().ok());
    v1::InputFile file;
    file.set_artifact(name);
    return file;
  }

  InputFetcher Fetch() {
    return [this](const v1::InputFile& file, absl::string_view) -> absl::StatusOr<std::string> {
      return absl::StrCat(folder_, "/", file.artifact());
    };
  }

  static void SetNoise(const std::string& sha256, v1::ComparisonSpec::GenerationPair::Side* side) {
    side->clear_noise();
    for (const char* name : {"noise.video", "noise.audio"}) {
      v1::TensorDigest& noise = *side->add_noise();
      noise.set_name(name);
      noise.set_sha256(sha256);
    }
  }

  v1::ComparisonSpec::GenerationPair Pair() {
    v1::ComparisonSpec::GenerationPair pair;
    pair.add_seeds(42);
    const auto fill = [this](const char* job, const char* composition, float brightness,
                             v1::ComparisonSpec::GenerationPair::Side* side) {
      side->set_job(absl::StrCat("jobs/", job));
      side->set_run(absl::StrCat("runs/", job));
      side->set_composition(composition);
      *side->mutable_media() = Write(job, brightness);
      SetNoise("aa", side);
    };
    fill("a", "candidate", 0.501f, pair.mutable_side_a());
    fill("b", "provider/default", 0.5f, pair.mutable_side_b());
    fill("c", "provider/sdpa-math", 0.52f, pair.add_side_spread());
    fill("d", "provider/default", 0.5f, pair.mutable_side_repeat());
    pair.mutable_side_a()->add_latent_drift()->set_step(3);
    return pair;
  }

  JobEnvironment environment_;
  std::string folder_;
  std::vector<v1::Progress> progress_;
};

TEST_F(MediaComparisonTest, ASeedIsMeasuredBesideTheProvidersSpreadAndItsRepeat) {
  const absl::StatusOr<JobResult> result = RunGenerationComparison(Pair(), Fetch(), environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::GenerationComparisonReport& report = result->report.generation_comparison();
  EXPECT_EQ(report.seed(), 42u);
  EXPECT_EQ(report.run(), "runs/a");
  EXPECT_EQ(report.reference_run(), "runs/b");
  EXPECT_TRUE(report.noise_equal());
  EXPECT_NEAR(report.quality().psnr_db(), 60, 0.01);
  EXPECT_EQ(report.quality().subject(), "candidate (jobs/a)");
  EXPECT_TRUE(report.quality().passed());
  ASSERT_EQ(report.provider_spread_size(), 1);
  EXPECT_NEAR(report.provider_spread(0).psnr_db(), 33.98, 0.01);
  // They show what the bounds mean; they are not held to them.
  EXPECT_EQ(report.provider_spread(0).gates_size(), 0);
  EXPECT_TRUE(report.provider_repeat().frames_bitwise_equal());
  ASSERT_EQ(report.latent_drift_size(), 1);
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_PASSED);
  ASSERT_FALSE(progress_.empty());
  EXPECT_EQ(progress_.back().total(), 9);
}

TEST_F(MediaComparisonTest, TheContractsBoundsDecide) {
  v1::ComparisonSpec::GenerationPair pair = Pair();
  pair.mutable_side_a()->mutable_bounds()->set_psnr_db_min(70);
  const absl::StatusOr<JobResult> result = RunGenerationComparison(pair, Fetch(), environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "psnr");
  EXPECT_EQ(result->report.verdict().first_failure().where(), "seed 42");
}

TEST_F(MediaComparisonTest, OtherNoiseIsRefusedBeforeAnythingIsRead) {
  for (const bool of_spread : {false, true}) {
    v1::ComparisonSpec::GenerationPair pair = Pair();
    v1::ComparisonSpec::GenerationPair::Side* const side =
        of_spread ? pair.mutable_side_spread(0) : pair.mutable_side_a();
    side->mutable_noise(1)->set_sha256("bb");
    const InputFetcher fetch = [](const v1::InputFile&, absl::string_view) {
      ADD_FAILURE() << "read";
      return absl::StatusOr<std::string>(absl::InternalError(""));
    };
    const absl::Status status = RunGenerationComparison(pair, fetch, environment_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(GetReason(status), "NOISE_DIFFERS");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("jobs/", of_spread ? "c" : "a",
                                       " began with another noise.audio than jobs/b")));
  }
}

TEST_F(MediaComparisonTest, OtherShapesAreRefused) {
  v1::ComparisonSpec::GenerationPair pair = Pair();
  *pair.mutable_side_a()->mutable_media() = Write("longer", 0.5f, 10);
  const absl::Status status = RunGenerationComparison(pair, Fetch(), environment_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(GetReason(status), "SHAPE_DIFFERS");
}

TEST_F(MediaComparisonTest, WithoutFramesNothingIsJudged) {
  v1::ComparisonSpec::GenerationPair pair = Pair();
  pair.mutable_side_b()->clear_media();
  pair.mutable_side_b()->set_not_decoded("2 latent frames make no clip");
  const absl::StatusOr<JobResult> result = RunGenerationComparison(pair, Fetch(), environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  EXPECT_EQ(result->report.generation_comparison().not_compared(),
            "jobs/b has no frames of this seed: 2 latent frames make no clip");
}

TEST_F(MediaComparisonTest, ADifferenceVideoNeedsFfmpeg) {
  v1::ComparisonSpec::MediaPair pair;
  *pair.mutable_a() = Write("x", 0.5f);
  *pair.mutable_b() = Write("y", 0.6f);
  pair.set_a_label("x.safetensors");
  const absl::StatusOr<JobResult> result = RunMediaComparison(pair, Fetch(), environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.media().subject(), "x.safetensors");
  EXPECT_EQ(result->report.media().reference(), "y");
  EXPECT_TRUE(result->files.empty());
  pair.set_difference_video(true);
  environment_.ffmpeg = absl::UnavailableError("FFmpeg: not there");
  EXPECT_EQ(RunMediaComparison(pair, Fetch(), environment_).status().message(),
            "FFmpeg: not there");
}

TEST_F(MediaComparisonTest, WhatIsNoMediaNamesItsField) {
  v1::ComparisonSpec::MediaPair pair;
  *pair.mutable_a() = Write("x", 0.5f);
  pair.mutable_b()->set_artifact("nothing");
  std::ofstream(folder_ + "/nothing") << "no media at all";
  const absl::Status status = RunMediaComparison(pair, Fetch(), environment_).status();
  ASSERT_EQ(GetFieldViolations(status).size(), 1u) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "comparison.media.b");
}

TEST_F(MediaComparisonTest, KeptFramesBecomeTheMp4ThatWouldHaveBeenMade) {
  environment_.ffmpeg = media::FfmpegLibrary::Load();
  ASSERT_TRUE(environment_.ffmpeg.ok()) << environment_.ffmpeg.status();
  const media::VideoFormat format = {9, 16, 16, 24};
  const media::AudioTrack audio = {32000, 2, std::vector<float>(24000, 0.25f)};
  auto kept = media::KeptFramesWriter::Create(folder_ + "/kept", format, &audio);
  auto at_once =
      media::Mp4Writer::Create(*environment_.ffmpeg, folder_ + "/once.mp4", format, &audio);
  ASSERT_TRUE(kept.ok() && at_once.ok());
  for (uint8_t i = 0; i < 9; ++i) {
    const std::vector<uint8_t> bytes(3 * 16 * 16, static_cast<uint8_t>(20 * i));
    media::VideoFrame frame;
    frame.bytes = bytes;
    ASSERT_TRUE(kept->AddFrame(frame).ok());
    ASSERT_TRUE((*at_once)->AddFrame(bytes).ok());
  }
  ASSERT_TRUE(kept->Finish().ok());
  ASSERT_TRUE((*at_once)->Finish().ok());
  const absl::StatusOr<JobResult> result =
      MakeKeptMedia(folder_ + "/kept", "artifacts/kept", environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.decode().frames(), 9);
  EXPECT_EQ(result->report.decode().samples(), 12000);
  ASSERT_EQ(result->files.size(), 1u);
  EXPECT_EQ(*ReadFile(result->files[0].path, 1 << 20), *ReadFile(folder_ + "/once.mp4", 1 << 20));

  environment_.ffmpeg = absl::UnavailableError("FFmpeg: not there");
  EXPECT_TRUE(absl::IsUnavailable(
      MakeKeptMedia(folder_ + "/kept", "artifacts/kept", environment_).status()));
}

}  // namespace
}  // namespace plumbline::jobs
