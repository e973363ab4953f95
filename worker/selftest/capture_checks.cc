// The worker's arithmetic against captures of the real model code.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/json.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/compare.h"
#include "worker/h3/noise_generator.h"
#include "worker/h3/packed_layout.h"
#include "worker/h3/sampler.h"
#include "worker/selftest/checks.h"

namespace plumbline::selftest {
namespace {

// The layout of the captures: 53 rows.
constexpr int kText = 7, kFrames = 2, kHeight = 6, kWidth = 8, kAudio = 5;
// Float32 sums in another order; a generation adds up its steps'.
constexpr double kFloat32Bound = 5e-6;
constexpr double kGenerationBound = 2e-5;
// Bfloat16 by another library, on another device.
constexpr double kBfloat16Bound = 3e-2;
constexpr double kDrawBound = 2e-6;  // Of the GPU's fast sine and cosine.
constexpr int kCapturedMultiprocessors = 132;

void SetCapturedLayout(v1::Layout* layout) {
  layout->set_text_rows(kText);
  layout->set_frames(kFrames);
  layout->set_height(kHeight);
  layout->set_width(kWidth);
  layout->set_audio_latents(kAudio);
  layout->add_keyframes(v1::KEYFRAME_FIRST);
}

std::string SavedTensors(const jobs::JobResult& result) {
  for (const jobs::OutputFile& file : result.files) {
    if (file.role == v1::ARTIFACT_ROLE_TENSORS) return file.path;
  }
  return "";
}

// The worst relative L2 of the capture's tensors, all of which the job must have saved.
absl::StatusOr<Outcome> CompareSaved(const jobs::JobResult& result, const std::string& capture,
                                     double bound) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile saved,
                             SafetensorsFile::Open(SavedTensors(result)));
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile expected, SafetensorsFile::Open(capture));
  ThreadPool pool(1);
  double worst = 0;
  std::string worst_name = "all equal";
  for (const TensorInfo& tensor : expected.tensors()) {
    if (tensor.name == "condition_latents") continue;  // An input.
    const TensorInfo* const found = saved.Find(tensor.name);
    if (found == nullptr) return Outcome{absl::StrCat(tensor.name, " was not computed"), false};
    const v1::TensorComparison comparison = drift::CompareTensors(
        "capture",
        drift::AsComparedTensor(expected.Bytes(tensor).data(), tensor.dtype, tensor.shape), "saved",
        drift::AsComparedTensor(saved.Bytes(*found).data(), found->dtype, found->shape),
        drift::NameOtherRow, pool);
    if (!comparison.incomparable().empty()) {
      return Outcome{absl::StrCat(tensor.name, ": ", comparison.incomparable()), false};
    }
    // So that a NaN is worst of all.
    if (!(comparison.relative_l2() <= worst)) {
      worst = comparison.relative_l2();
      worst_name = tensor.name;
    }
  }
  return Outcome{absl::StrFormat("%.2g (%s)", worst, worst_name), worst <= bound};
}

std::string BoundText(double bound) { return absl::StrFormat("relative L2 <= %g", bound); }

void AddBlock(const Bench& bench, absl::string_view composition, absl::string_view capture,
              double bound, std::vector<Check>* checks) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  spec.set_composition(std::string(composition));
  spec.set_save_tensors(true);
  spec.mutable_block_replay()->set_backward(true);
  SetCapturedLayout(spec.mutable_block_replay()->add_layouts());
  checks->push_back(
      {Row(capture, "capture", "block-replay", absl::StrCat(composition, ": ", BoundText(bound))),
       [&bench, spec, path = bench.Golden(capture), bound]() -> absl::StatusOr<Outcome> {
         PLUMBLINE_ASSIGN_OR_RETURN(const jobs::JobResult result, bench.Run(spec));
         return CompareSaved(result, path, bound);
       }});
}

void AddModel(const Bench& bench, absl::string_view composition, absl::string_view capture,
              double bound, std::vector<Check>* checks) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  spec.set_composition(std::string(composition));
  spec.set_save_tensors(true);
  spec.mutable_full_model()->add_providers("provider/default");
  SetCapturedLayout(spec.mutable_full_model()->add_layouts());
  checks->push_back(
      {Row(capture, "capture", "full-model", absl::StrCat(composition, ": ", BoundText(bound))),
       [&bench, spec, path = bench.Golden(capture), bound]() -> absl::StatusOr<Outcome> {
         PLUMBLINE_ASSIGN_OR_RETURN(const jobs::JobResult result, bench.Run(spec));
         return CompareSaved(result, path, bound);
       }});
}

// The candidate, judged by the gates with captures in the place of golden and provider.
void AddGate(const Bench& bench, std::vector<Check>* checks) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  v1::BlockReplaySpec& replay = *spec.mutable_block_replay();
  replay.set_backward(true);
  SetCapturedLayout(replay.add_layouts());
  replay.mutable_captures()->mutable_golden()->set_worker_path("block0_fp32_cpu.safetensors");
  checks->push_back({Row("block0_fp32_cpu.safetensors", "capture", "block-replay",
                         "candidate: every gate passed"),
                     [&bench, spec]() -> absl::StatusOr<Outcome> {
                       PLUMBLINE_ASSIGN_OR_RETURN(const jobs::JobResult result, bench.Run(spec));
                       const v1::Verdict& verdict = result.report.verdict();
                       const bool passed = verdict.outcome() == v1::OUTCOME_PASSED;
                       return Outcome{passed ? "every gate passed" : verdict.sentence(), passed};
                     }});
}

// How many values of a capture differ in their bits.
template <typename T>
int64_t Differing(const SafetensorsFile& file, const std::string& name,
                  const std::vector<T>& values) {
  const absl::StatusOr<absl::Span<const uint8_t>> bytes = file.Bytes(name);
  if (!bytes.ok() || bytes->size() != values.size() * sizeof(T)) return 1;
  int64_t differing = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    differing += std::memcmp(bytes->data() + i * sizeof(T), &values[i], sizeof(T)) != 0;
  }
  return differing;
}

Outcome DifferingText(int64_t differing) {
  return {differing == 0 ? "bitwise equal" : absl::StrCat(differing, " values differ"),
          differing == 0};
}

absl::StatusOr<Outcome> CheckLayouts(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                             SafetensorsFile::Open(bench.Golden("layouts.safetensors")));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(bench.Golden("golden.json"), 1 << 20));
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json golden, ParseJson(text, "golden.json"));
  int64_t differing = 0;
  for (const auto& [name, sizes] : golden["layouts"].items()) {
    h3::LayoutSpec spec;
    PLUMBLINE_ASSIGN_OR_RETURN(spec.text_rows, GetInt(sizes, name, "text_tokens"));
    PLUMBLINE_ASSIGN_OR_RETURN(spec.latent_frames, GetInt(sizes, name, "latent_frames"));
    PLUMBLINE_ASSIGN_OR_RETURN(spec.latent_height, GetInt(sizes, name, "latent_height"));
    PLUMBLINE_ASSIGN_OR_RETURN(spec.latent_width, GetInt(sizes, name, "latent_width"));
    PLUMBLINE_ASSIGN_OR_RETURN(spec.audio_latents, GetInt(sizes, name, "audio_latents"));
    for (const nlohmann::json& anchor : sizes["anchors"]) {
      (anchor == "first" ? spec.first_keyframe : spec.last_keyframe) = true;
    }
    PLUMBLINE_ASSIGN_OR_RETURN(
        const h3::PackedLayout layout,
        h3::BuildPackedLayout(spec, h3::kReplayVideoTimestep, h3::kReplayAudioTimestep));
    differing += Differing(file, name + ".position_ids", layout.position_ids);
    differing += Differing(file, name + ".token_tags", layout.token_tags);
    differing += Differing(file, name + ".video_indices", layout.video_indices);
    differing += Differing(file, name + ".audio_indices", layout.audio_indices);
    differing += Differing(file, name + ".timestep_indices", layout.timestep_indices);
  }
  return DifferingText(differing);
}

absl::StatusOr<Outcome> CheckSchedules(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                             SafetensorsFile::Open(bench.Golden("scheduler.safetensors")));
  int64_t differing = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    // sigmas.POINTS.SHIFT
    const std::vector<std::string> parts = absl::StrSplit(tensor.name, '.');
    int64_t points = 0;
    double shift = 0;
    if (parts[0] != "sigmas" || parts.size() < 3 || !absl::SimpleAtoi(parts[1], &points) ||
        !absl::SimpleAtod(parts[2], &shift)) {
      continue;
    }
    const h3::Schedule schedule = h3::MakeSchedule(points, shift);
    differing += Differing(file, tensor.name, schedule.sigmas);
    differing +=
        Differing(file, absl::StrCat("timesteps.", parts[1], ".", parts[2]), schedule.timesteps);
  }
  return DifferingText(differing);
}

absl::StatusOr<Outcome> CheckDraws(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                             SafetensorsFile::Open(bench.Golden("rng.safetensors")));
  int64_t differing = 0;
  double worst = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    // DEVICE.SEED.COUNT: the first draw of a fresh generator.
    const std::vector<std::string> parts = absl::StrSplit(tensor.name, '.');
    int64_t seed = 0, count = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &seed) ||
        !absl::SimpleAtoi(parts[2], &count)) {
      continue;
    }
    std::vector<float> values(count);
    h3::Rng rng;
    rng.kind = parts[0] == "cpu" ? h3::Rng::Kind::kTorchCpu : h3::Rng::Kind::kTorchCuda;
    rng.multiprocessors = kCapturedMultiprocessors;
    PLUMBLINE_RETURN_IF_ERROR(h3::MakeNormalGenerator(rng, seed)->Draw(absl::MakeSpan(values)));
    if (rng.kind == h3::Rng::Kind::kTorchCpu) {
      differing += Differing(file, tensor.name, values);
      continue;
    }
    const absl::Span<const uint8_t> captured = file.Bytes(tensor);
    for (int64_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, captured.data() + i * sizeof(float), sizeof(float));
      worst = std::max(worst, std::abs(static_cast<double>(value) - values[i]));
    }
  }
  Outcome outcome = DifferingText(differing);
  outcome.passed = outcome.passed && worst <= kDrawBound;
  absl::StrAppend(&outcome.found, absl::StrFormat(", the GPU's within %.2g", worst));
  return outcome;
}

}  // namespace

absl::StatusOr<v1::JobSpec> CapturedGeneration(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile inputs,
                             SafetensorsFile::Open(bench.Golden("transformer_inputs.safetensors")));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const SafetensorsFile capture,
      SafetensorsFile::Open(bench.Golden("generation_fp32_cpu.safetensors")));
  const TensorInfo* const prompt = inputs.Find("input.encoder_hidden_states");
  const TensorInfo* const latents = capture.Find("condition_latents");
  if (prompt == nullptr || latents == nullptr) {
    return absl::InternalError("the captures have no prompt or no keyframe");
  }
  const std::vector<int64_t> tags(kText, 1);
  PLUMBLINE_RETURN_IF_ERROR(WriteSafetensors(
      bench.Golden("conditioning.safetensors"),
      {{{"prompt_embeds", prompt->dtype, prompt->shape}, inputs.Bytes(*prompt)},
       {{"text_token_tags", DType::kI64, {kText}},
        {reinterpret_cast<const uint8_t*>(tags.data()), tags.size() * sizeof(tags[0])}},
       {{"condition_latents.0", latents->dtype, latents->shape}, capture.Bytes(*latents)}},
      {{"anchors", "first"}}));
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  v1::GenerationSpec& generation = *spec.mutable_generation();
  generation.mutable_conditioning()->set_worker_path("conditioning.safetensors");
  generation.set_latents_only(true);
  v1::GenerationContract& contract = *generation.mutable_contract();
  contract.add_seeds(42);
  generation.add_seeds(42);
  contract.set_num_frames(5);
  contract.set_height(kHeight * 16);
  contract.set_width(kWidth * 16);
  contract.set_num_inference_steps(6);
  contract.set_num_audio_latents(kAudio);
  contract.set_rng("torch-cpu");
  return spec;
}

void AddCaptureChecks(const Bench& bench, std::vector<Check>* checks) {
  const auto add = [&](absl::string_view file, absl::string_view job, absl::string_view expected,
                       absl::StatusOr<Outcome> (*check)(const Bench&)) {
    checks->push_back(
        {Row(file, "capture", job, expected), [&bench, check] { return check(bench); }});
  };
  add("layouts.safetensors", "layout", "bitwise equal", CheckLayouts);
  add("scheduler.safetensors", "generation", "bitwise equal", CheckSchedules);
  add("rng.safetensors", "generation",
      absl::StrFormat("bitwise equal, the GPU's within %g", kDrawBound), CheckDraws);
  AddBlock(bench, "golden", "block0_fp32_cpu.safetensors", kFloat32Bound, checks);
  AddBlock(bench, "provider/default", "block0_bf16_cuda.safetensors", kBfloat16Bound, checks);
  AddGate(bench, checks);
  AddModel(bench, "golden", "transformer_fp32_cpu.safetensors", kFloat32Bound, checks);
  AddModel(bench, "provider/default", "transformer_bf16_cuda.safetensors", kBfloat16Bound, checks);
  checks->push_back({Row("generation_fp32_cpu.safetensors", "capture", "generation",
                         absl::StrCat("golden: ", BoundText(kGenerationBound))),
                     [&bench]() -> absl::StatusOr<Outcome> {
                       PLUMBLINE_ASSIGN_OR_RETURN(v1::JobSpec spec, CapturedGeneration(bench));
                       spec.set_composition("golden");
                       spec.set_save_tensors(true);
                       PLUMBLINE_ASSIGN_OR_RETURN(const jobs::JobResult result, bench.Run(spec));
                       return CompareSaved(result, bench.Golden("generation_fp32_cpu.safetensors"),
                                           kGenerationBound);
                     }});
}

}  // namespace plumbline::selftest
