#include "worker/jobs/generation/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/match.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/jobs/generation/fixture.h"
#include "worker/jobs/generation/sensitivity.h"

namespace plumbline::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const JobResult& result, v1::ArtifactRole role) {
  for (const OutputFile& file : result.files) {
    if (file.role == role) return file.path;
  }
  return "";
}

TEST_F(GenerationTest, CapturedGenerationUnderGolden) {
  v1::JobSpec spec = Spec("golden");
  spec.set_save_tensors(true);
  const absl::StatusOr<JobResult> result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  const SafetensorsFile saved = *SafetensorsFile::Open(PathOf(*result, v1::ARTIFACT_ROLE_TENSORS));
  const SafetensorsFile capture = *SafetensorsFile::Open(kCapture);
  for (const TensorInfo& tensor : capture.tensors()) {
    if (tensor.name == "condition_latents") continue;
    const TensorInfo* const found = saved.Find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    ASSERT_EQ(found->dtype, tensor.dtype) << tensor.name;
    const absl::Span<const uint8_t> ours = saved.Bytes(*found);
    const absl::Span<const uint8_t> captured = capture.Bytes(tensor);
    const bool is_noise = tensor.name == "rows.0" || tensor.name == "audio.0";
    if (is_noise || absl::StartsWith(tensor.name, "timestep")) {
      EXPECT_EQ(std::memcmp(ours.data(), captured.data(), captured.size()), 0) << tensor.name;
    } else {
      EXPECT_LE(RelativeL2(Floats(capture, tensor.name), Floats(saved, tensor.name)), 1e-5)
          << tensor.name;
    }
  }
  EXPECT_EQ(saved.tensors().size() + 1, capture.tensors().size());
}

TEST_F(GenerationTest, ReportSaysWhatRanAndWhatItGave) {
  const absl::StatusOr<JobResult> result = Run(Spec("candidate"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().sentence(),
            "PASSED: seed 42: 5 steps, every input reaches both velocities "
            "(preflight: not citable).");
  EXPECT_EQ(result->report.composition(), "candidate");
  const v1::GenerationReport& report = result->report.generation();
  EXPECT_EQ(report.run(), run_);
  EXPECT_TRUE(report.preflight());
  EXPECT_EQ(report.contract().video_shift(), 12);
  EXPECT_EQ(report.contract().bounds().psnr_db_min(), 30);
  EXPECT_THAT(report.contract().seeds(), ElementsAre(42));
  EXPECT_EQ(report.layout().audio_latents(), 5);
  ASSERT_EQ(report.noise_size(), 3);
  EXPECT_EQ(report.noise(0).name(), "noise.keyframe.0");
  ASSERT_EQ(report.steps_size(), kSteps);
  EXPECT_EQ(report.steps_computed(), kSteps);
  EXPECT_EQ(report.steps_replayed(), 0);
  EXPECT_EQ(report.steps(0).video_timestep(), 0);
  ASSERT_EQ(previews_.size(), static_cast<size_t>(kSteps));
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(previews_[step].step(), step);
    EXPECT_EQ(previews_[step].seed(), 42u);
    EXPECT_EQ(previews_[step].png().substr(1, 3), "PNG");
  }
  EXPECT_FALSE(report.reused());
  EXPECT_THAT(report.not_decoded(), HasSubstr("2 latent frames make no clip"));
  EXPECT_FALSE(report.trace().groups().empty());
  EXPECT_TRUE(report.trace().not_executed().empty());
  std::vector<std::string> inputs;
  for (const v1::SensitivityCheck& check : report.sensitivity()) {
    EXPECT_TRUE(check.passed()) << check.input();
    inputs.push_back(check.input());
  }
  EXPECT_THAT(inputs, ElementsAre("text", "keyframe", "audio", "video", "timestep"));

  const SafetensorsFile latents =
      *SafetensorsFile::Open(PathOf(*result, v1::ARTIFACT_ROLE_LATENTS));
  EXPECT_THAT(latents.Find("latents.video")->shape, ElementsAre(1, 24, 2, 6, 8));
  EXPECT_THAT(latents.Find("latents.audio")->shape, ElementsAre(2, 32, 5));
  ASSERT_EQ(steps_.size(), static_cast<size_t>(kSteps));
  EXPECT_TRUE(steps_[4].saved());
  EXPECT_EQ(steps_[4].total(), kSteps);
}

TEST_F(GenerationTest, CandidateNeedsTheGateThatItPassed) {
  v1::JobSpec spec = Spec("candidate");
  spec.mutable_generation()->set_preflight(false);
  absl::StatusOr<JobResult> result = Run(spec);
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status()));
  EXPECT_EQ(GetReason(result.status()), "NO_GATE");
  EXPECT_TRUE(steps_.empty());

  spec.mutable_generation()->set_gate("jobs/7");
  v1::NumericalIdentity gate;
  {
    const absl::StatusOr<JobResult> preflight = Run(Spec("candidate"));
    ASSERT_TRUE(preflight.ok()) << preflight.status();
    gate = preflight->report.identity();
  }
  environment_.generation.gate_identity = gate;
  result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->report.generation().preflight());
  EXPECT_EQ(result->report.generation().gate(), "jobs/7");
  EXPECT_TRUE(result->report.verdict().qualifications().empty());

  kernel_identity_.sha256 = std::string(64, 'b');
  result = Run(spec);
  EXPECT_EQ(GetReason(result.status()), "IDENTITY_DIFFERS");
  EXPECT_THAT(result.status().message(), HasSubstr("kernel differs"));
}

TEST_F(GenerationTest, WhateverDecidesNumbersMakesAnotherRun) {
  std::map<std::string, std::string> runs;
  const auto add = [&](const std::string& what, const v1::JobSpec& spec) {
    const absl::StatusOr<JobResult> result = Run(spec);
    ASSERT_TRUE(result.ok()) << what << ": " << result.status();
    const auto [place, is_new] = runs.emplace(run_, what);
    EXPECT_TRUE(is_new) << what << " is the run of " << place->second;
  };
  v1::JobSpec spec = Spec("golden");
  // Two points are one step: the identity is what is looked at.
  spec.mutable_generation()->mutable_contract()->set_num_inference_steps(2);
  spec.mutable_generation()->mutable_contract()->add_seeds(43);
  spec.mutable_generation()->add_seeds(42);
  add("the first", spec);
  v1::JobSpec other = spec;
  other.mutable_generation()->set_seeds(0, 43);
  add("another seed", other);
  other = spec;
  other.mutable_generation()->mutable_contract()->set_video_shift(11);
  add("another contract", other);
  add("another composition", [&] {
    v1::JobSpec provider = spec;
    provider.set_composition("provider");
    return provider;
  }());
  files_.conditioning = WriteConditioning("other", 2);
  add("another conditioning", spec);
  files_.conditioning = WriteConditioning("conditioning", 1);
  kernel_identity_.sha256 = std::string(64, 'b');
  add("another kernel source", spec);
  kernel_identity_.sha256 = std::string(64, 'a');
  weights_ = *h3::OpenCheckpoint("synthetic:tiny:2", {});
  add("another checkpoint", spec);
}

TEST_F(GenerationTest, NoiseFromAFileIsTheSameVideoAndAnotherRun) {
  const absl::StatusOr<JobResult> drawn = Run(Spec("golden"));
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const std::string drawn_run = run_;
  const auto noise = h3::MakeGeneratorNoise({h3::Rng::Kind::kTorchCpu, 0}, 42);
  std::vector<std::vector<float>> values;
  std::vector<TensorView> views;
  for (const h3::NoiseDraw& draw :
       h3::NoiseDraws(weights_->config(), {7, 2, 6, 8, 5, true, false})) {
    size_t count = 1;
    for (int64_t extent : draw.shape) count *= static_cast<size_t>(extent);
    values.emplace_back(count);
    ASSERT_TRUE(noise->Draw(draw, absl::MakeSpan(values.back())).ok());
    views.push_back({{draw.name, DType::kF32, draw.shape},
                     {reinterpret_cast<const uint8_t*>(values.back().data()), count * 4}});
  }
  files_.noise = environment_.output_folder + "/noise";
  ASSERT_TRUE(WriteSafetensors(files_.noise, views).ok());
  const absl::StatusOr<JobResult> read = Run(Spec("golden"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(LatentDigests(*read), LatentDigests(*drawn));
  EXPECT_NE(run_, drawn_run);
}

TEST_F(GenerationTest, EveryControlIsCaughtWhereItIsPut) {
  int controls = 0;
  for (const FaultInfo& fault : Faults()) {
    if (fault.job != "generation") continue;
    ++controls;
    v1::JobSpec spec = Spec("candidate");
    spec.mutable_generation()->set_preflight(false);
    spec.set_inject(std::string(fault.name));
    const absl::StatusOr<JobResult> result = Run(spec);
    ASSERT_TRUE(result.ok()) << fault.name << ": " << result.status();
    EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_FAILED) << fault.name;
    EXPECT_EQ(result->report.verdict().first_failure().entry(), fault.expected_entry);
    EXPECT_TRUE(result->report.control().caught()) << fault.name;
    // Nothing of it may be taken for a run.
    EXPECT_TRUE(absl::IsNotFound(store_.GetRun(result->report.generation().run()).status()));
    environment_.generation.sensitivity.clear();
  }
  EXPECT_EQ(controls, 3);
  v1::JobSpec spec = Spec("candidate");
  spec.set_inject("qk-heads");
  EXPECT_THAT(Run(spec).status().message(), HasSubstr("step-bit-flip"));
}

TEST_F(GenerationTest, LatentDriftAgainstAnotherRun) {
  ASSERT_TRUE(Run(Spec("provider")).ok());
  environment_.generation.against_run = run_;
  environment_.generation.sensitivity.clear();
  absl::StatusOr<JobResult> result = Run(Spec("candidate"));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(drift_.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(result->report.generation().latent_drift_size(), kSteps);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(drift_[step].step(), step);
    EXPECT_GT(drift_[step].video(), 0);
    EXPECT_LT(drift_[step].video(), 0.05);
    EXPECT_GT(drift_[step].audio(), 0);
  }
  // Against itself, replayed.
  environment_.generation.against_run = run_;
  drift_.clear();
  ASSERT_TRUE(Run(Spec("candidate")).ok());
  ASSERT_EQ(drift_.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(drift_.back().video(), 0);

  v1::JobSpec spec = Spec("candidate");
  spec.mutable_generation()->mutable_contract()->set_seeds(0, 43);
  EXPECT_EQ(GetReason(Run(spec).status()), "NOISE_DIFFERS");
}

TEST_F(GenerationTest, RefusesWhatTheContractAndTheFilesDoNotAllow) {
  v1::JobSpec spec = Spec("golden");
  spec.mutable_generation()->mutable_contract()->set_height(100);
  EXPECT_THAT(Run(spec).status().message(), HasSubstr("generation.contract: height"));
  spec = Spec("golden");
  spec.mutable_generation()->mutable_contract()->set_conditioning_sha256(std::string(64, '0'));
  EXPECT_TRUE(absl::IsInvalidArgument(Run(spec).status()));
  spec = Spec("golden");
  spec.mutable_generation()->add_seeds(7);
  EXPECT_THAT(Run(spec).status().message(), HasSubstr("accepted: 42"));
  files_.conditioning = kCapturedInputs;
  EXPECT_THAT(Run(Spec("golden")).status().message(), HasSubstr("generation.conditioning"));
}

TEST_F(GenerationTest, DiagnosticReplaysASavedStep) {
  ASSERT_TRUE(Run(Spec("candidate")).ok());
  v1::JobSpec spec;
  spec.set_composition("candidate");
  *spec.mutable_diagnostic()->mutable_generation() = Spec("candidate").generation();
  spec.mutable_diagnostic()->set_run(run_);
  for (int step : {0, 3}) {
    spec.mutable_diagnostic()->set_step(step);
    const absl::StatusOr<JobResult> result = RunDiagnostic(spec, files_, *weights_, environment_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_PASSED);
    EXPECT_TRUE(result->report.diagnostic().same_identity());
    ASSERT_EQ(result->report.diagnostic().velocities_size(), 2);
    EXPECT_TRUE(result->report.diagnostic().velocities(1).comparison().bitwise_equal());
  }
  spec.set_composition("golden");
  const absl::StatusOr<JobResult> golden = RunDiagnostic(spec, files_, *weights_, environment_);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(golden->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  const v1::TensorComparison& video = golden->report.diagnostic().velocities(0).comparison();
  EXPECT_GT(video.relative_l2(), 0);
  EXPECT_LT(video.relative_l2(), 0.05);
  EXPECT_EQ(golden->report.diagnostic().saved_composition(), "candidate");

  spec.mutable_diagnostic()->set_step(kSteps);
  EXPECT_THAT(RunDiagnostic(spec, files_, *weights_, environment_).status().message(),
              HasSubstr("accepted: 0 to 4"));
}

}  // namespace
}  // namespace plumbline::jobs
