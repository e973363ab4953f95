#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_FIXTURE_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "kernels/builtin.h"
#include "kernels/identity/kernel_identity.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/file_weights.h"
#include "worker/jobs/generation/generation.h"
#include "worker/steps/memory_step_store.h"

namespace plumbline::jobs {

inline constexpr char kCapture[] = "tests/golden/generation_fp32_cpu.safetensors";
inline constexpr char kCapturedInputs[] = "tests/golden/transformer_inputs.safetensors";

// Generations of the captured case, the bundled checkpoint on a CPU: 53 rows, 5 steps. Attempts
// share a store and what a coordinator remembers of the attempts before.
class GenerationTest : public testing::Test {
 protected:
  static constexpr int kSteps = 5;

  GenerationTest() {
    device_ = *MakeCpuDevice(/*threads=*/2, int64_t{1} << 30);
    environment_.context.device = device_.get();
    environment_.context.registry = &registry_;
    environment_.context.clock = SystemClock();
    environment_.context.on_progress = [](const v1::Progress&) {};
    environment_.context.check_cancelled = [] { return absl::OkStatus(); };
    kernel_identity_.sha256 = std::string(64, 'a');
    environment_.kernel_identity = &kernel_identity_;
    environment_.libraries = {{"openblas", "of the test"}};
    environment_.output_folder = absl::StrCat(testing::TempDir(), "/generation_", getpid());
    std::filesystem::remove_all(environment_.output_folder);
    std::filesystem::create_directories(environment_.output_folder);

    GenerationEnvironment& generation = environment_.generation;
    generation.steps = &store_;
    generation.on_run = [this](const std::string& run) { run_ = run; };
    generation.on_step = [this](const v1::StepEvent& event) { steps_.push_back(event); };
    generation.on_latent_drift = [this](const v1::LatentDrift& drift) { drift_.push_back(drift); };
    generation.on_preview = [this](const v1::PreviewEvent& preview) {
      previews_.push_back(preview);
    };
    generation.on_sensitivity = [this](const v1::SensitivityCheck& check) {
      environment_.generation.sensitivity.push_back(check);
    };

    auto weights = h3::OpenFileWeights(std::filesystem::absolute("tests/golden/checkpoint"), {"/"});
    EXPECT_TRUE(weights.ok()) << weights.status();
    weights_ = *std::move(weights);
    files_.conditioning = WriteConditioning("conditioning", /*scale=*/1);
  }

  // The capture's prompt and keyframe; every value of the prompt times `scale`.
  std::string WriteConditioning(const std::string& name, float scale) {
    const SafetensorsFile inputs = *SafetensorsFile::Open(kCapturedInputs);
    const SafetensorsFile capture = *SafetensorsFile::Open(kCapture);
    std::vector<float> prompt = Floats(inputs, "input.encoder_hidden_states");
    for (float& value : prompt) value *= scale;
    const std::vector<float> latents = Floats(capture, "condition_latents");
    const std::vector<int64_t> tags(7, 1);
    const std::string path = absl::StrCat(environment_.output_folder, "/", name);
    const auto bytes = [](const auto& values) {
      return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                 values.size() * sizeof(values[0]));
    };
    const absl::Status written =
        WriteSafetensors(path,
                         {{{"prompt_embeds", DType::kF32, {1, 7, 64}}, bytes(prompt)},
                          {{"text_token_tags", DType::kI64, {7}}, bytes(tags)},
                          {{"condition_latents.0", DType::kF32, {1, 24, 1, 6, 8}}, bytes(latents)}},
                         {{"anchors", "first"}});
    EXPECT_TRUE(written.ok()) << written;
    return path;
  }

  static std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
    const absl::StatusOr<absl::Span<const uint8_t>> bytes = file.Bytes(name);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const auto* values = reinterpret_cast<const float*>(bytes->data());
    return {values, values + bytes->size() / sizeof(float)};
  }

  static v1::JobSpec Spec(const std::string& composition) {
    v1::JobSpec spec;
    spec.set_composition(composition);
    v1::GenerationContract& contract = *spec.mutable_generation()->mutable_contract();
    contract.add_seeds(42);
    contract.set_num_frames(5);
    contract.set_height(96);
    contract.set_width(128);
    contract.set_num_inference_steps(kSteps + 1);
    contract.set_num_audio_latents(5);
    contract.set_rng("torch-cpu");
    spec.mutable_generation()->set_preflight(composition != "golden");
    return spec;
  }

  absl::StatusOr<JobResult> Run(const v1::JobSpec& spec) {
    return RunGeneration(spec, files_, *weights_, environment_);
  }

  // The bytes of the velocities of every step of a run.
  std::vector<std::vector<std::string>> StoredSteps(const std::string& run) {
    std::vector<std::vector<std::string>> steps;
    EXPECT_TRUE(store_
                    .Fetch(run, 0, kSteps,
                           [&](steps::SavedStep step) {
                             steps.push_back(step.tensors);
                             return absl::OkStatus();
                           })
                    .ok());
    return steps;
  }

  static std::vector<std::string> LatentDigests(const JobResult& result) {
    std::vector<std::string> digests;
    for (const v1::TensorDigest& latents : result.report.generation().latents()) {
      digests.push_back(latents.sha256());
    }
    return digests;
  }

  std::unique_ptr<Device> device_;
  const Registry registry_ = MakeBuiltinRegistry();
  KernelIdentity kernel_identity_;
  JobEnvironment environment_;
  std::shared_ptr<const h3::WeightSource> weights_;
  GenerationFiles files_;
  steps::MemoryStepStore store_;

  std::string run_;                   // Of the last attempt.
  std::vector<v1::StepEvent> steps_;  // Of all attempts.
  std::vector<v1::LatentDrift> drift_;
  std::vector<v1::PreviewEvent> previews_;  // Likewise.
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_FIXTURE_H_
