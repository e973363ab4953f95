#include "server/scheduler/generation_validation.h"

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "server/resource_name.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/job_validation.h"
#include "server/scheduler/media_validation.h"
#include "server/store/run_name.h"

namespace plumbline::server {
namespace {

constexpr int kMaxSeeds = 1024;
constexpr int32_t kMaxPixels = 1 << 14;
constexpr int32_t kMaxFrames = 1 << 16;
constexpr int32_t kMaxGridPoints = 10000;
constexpr int32_t kMaxMultiprocessors = 1024;
constexpr int32_t kMaxSamplingRate = 384000;
constexpr int32_t kMaxAudioLatents = 1 << 22;
constexpr int kMaxSpread = 16;
constexpr int32_t kDefaultTile = 256;
constexpr absl::string_view kDefaultDecoder = "golden";
constexpr absl::string_view kContract = "spec.generation.contract";

bool IsRng(absl::string_view rng) {
  int32_t multiprocessors = 0;
  return rng.empty() || rng == "torch-cpu" ||
         (absl::ConsumePrefix(&rng, "torch-cuda:") && absl::SimpleAtoi(rng, &multiprocessors) &&
          multiprocessors >= 1 && multiprocessors <= kMaxMultiprocessors &&
          absl::StrCat(multiprocessors) == rng);
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

class ContractChecker {
 public:
  ContractChecker(const v1::GenerationContract& contract, SpecChecker* checker)
      : contract_(contract), checker_(checker) {}

  void Check() {
    const v1::GenerationContract& c = contract_;
    Seeds();
    Range("num_frames", c.num_frames(), 1, kMaxFrames);
    Side("height", c.height());
    Side("width", c.width());
    Range("num_inference_steps", c.num_inference_steps(), 2, kMaxGridPoints);
    if (c.has_video_shift()) Positive("video_shift", c.video_shift());
    if (c.has_audio_shift()) Positive("audio_shift", c.audio_shift());
    if (c.has_fps()) Positive("fps", c.fps());
    if (c.has_sampling_rate()) Range("sampling_rate", c.sampling_rate(), 1, kMaxSamplingRate);
    if (!IsRng(c.rng())) {
      Add("rng", absl::StrCat(Quoted(c.rng()), " is no generator"),
          absl::StrCat("torch-cpu, torch-cuda:N with N from 1 to ", kMaxMultiprocessors));
    }
    if (!c.decoder().empty()) {
      checker_->Add(CanonicalComposition(c.decoder(), kWholeModel, Field("decoder")).status());
    }
    if (c.has_num_audio_latents()) {
      Range("num_audio_latents", c.num_audio_latents(), 1, kMaxAudioLatents);
    }
    CheckBounds(Field("bounds"), c.bounds(), checker_);
    for (const auto& [name, digest] : {std::pair("checkpoint_sha256", c.checkpoint_sha256()),
                                       std::pair("conditioning_sha256", c.conditioning_sha256())}) {
      if (!digest.empty() && !IsSha256(digest)) {
        Add(name, absl::StrCat(Quoted(digest), " is no SHA-256"), "64 lower-case hex digits");
      }
    }
  }

 private:
  static std::string Field(absl::string_view name) { return absl::StrCat(kContract, ".", name); }

  void Add(absl::string_view name, absl::string_view what, absl::string_view accepted) {
    checker_->Add(Field(name), what, accepted);
  }
  void Range(absl::string_view name, int64_t value, int64_t min, int64_t max) {
    checker_->Range(Field(name), value, min, max);
  }
  void Side(absl::string_view name, int32_t pixels) {
    if (pixels < 32 || pixels > kMaxPixels || pixels % 32 != 0) {
      Add(name, absl::StrCat(pixels, " is not possible"),
          absl::StrCat("multiples of 32 to ", kMaxPixels));
    }
  }
  void Positive(absl::string_view name, double value) {
    if (!std::isfinite(value) || value <= 0) {
      Add(name, absl::StrCat(value, " is not possible"), "more than 0");
    }
  }

  void Seeds() {
    const auto& seeds = contract_.seeds();
    if (seeds.empty() || seeds.size() > kMaxSeeds) {
      Add("seeds", absl::StrCat(seeds.size(), " seeds"), absl::StrCat("1 to ", kMaxSeeds));
    }
    if (std::set<uint64_t>(seeds.begin(), seeds.end()).size() !=
        static_cast<size_t>(seeds.size())) {
      Add("seeds", "one is there twice", "each seed once");
    }
  }

  const v1::GenerationContract& contract_;
  SpecChecker* const checker_;
};

// They are what others are compared with, so nothing authorises them.
bool IsReference(absl::string_view composition) {
  return !absl::StrContains(composition, '+') &&
         (composition == "golden" || absl::StartsWith(composition, "provider/"));
}

}  // namespace

void CheckGeneration(v1::JobSpec* spec, SpecChecker* checker) {
  const v1::GenerationSpec& generation = spec->generation();
  checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  checker->Composition(kWholeModel, spec);
  checker->Fault(KindName(v1::JOB_KIND_GENERATION), {}, spec->inject());
  if (generation.has_contract()) {
    ContractChecker(generation.contract(), checker).Check();
  } else {
    checker->Add(std::string(kContract), "is not set", "a contract");
  }
  checker->File("spec.generation.conditioning", generation.conditioning());
  if (generation.has_noise()) checker->File("spec.generation.noise", generation.noise());

  const auto& known = generation.contract().seeds();
  const std::set<uint64_t> contract_seeds(known.begin(), known.end());
  std::set<uint64_t> seeds;
  for (int i = 0; i < generation.seeds_size(); ++i) {
    const uint64_t seed = generation.seeds(i);
    if (contract_seeds.count(seed) > 0 && seeds.insert(seed).second) continue;
    checker->Add(absl::StrCat("spec.generation.seeds[", i, "]"),
                 absl::StrCat(seed, " is not in the contract, or is there twice"),
                 "seeds of the contract, each once");
  }

  const bool needs_gate = !IsReference(spec->composition()) && spec->inject().empty();
  if (needs_gate && generation.gate().empty() && !generation.preflight()) {
    checker->Add("spec.generation.gate", absl::StrCat(spec->composition(), " is not authorised"),
                 "a full-model job that passed under the same numerical identity, or preflight");
  }
  if (generation.authorisation_case() == v1::GenerationSpec::kGate) {
    checker->Add(ParseName(generation.gate(), "jobs", "spec.generation.gate").status());
  }
  if (!generation.against().empty()) {
    checker->Add(ParseName(generation.against(), "jobs", "spec.generation.against").status());
  }
  if (generation.spread_size() > kMaxSpread) {
    checker->Add("spec.generation.spread", absl::StrCat(generation.spread_size(), " jobs"),
                 absl::StrCat("at most ", kMaxSpread));
  }
  for (int i = 0; i < generation.spread_size(); ++i) {
    checker->Add(
        ParseName(generation.spread(i), "jobs", absl::StrCat("spec.generation.spread[", i, "]"))
            .status());
  }
  if (!generation.repeat().empty()) {
    checker->Add(ParseName(generation.repeat(), "jobs", "spec.generation.repeat").status());
  }
  if (generation.against().empty() &&
      (generation.spread_size() > 0 || !generation.repeat().empty())) {
    checker->Add("spec.generation.against", "is not set, and spread and repeat are beside it",
                 "the generation to compare with");
  }
}

void CheckDiagnostic(v1::JobSpec* spec, SpecChecker* checker) {
  // Where there is none it is the run's.
  if (!spec->checkpoint().empty()) checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  if (spec->diagnostic().has_generation()) {
    checker->Add("spec.diagnostic.generation", "is what the run was made from", "nothing");
  }
  checker->Composition(kWholeModel, spec);
  checker->Add(ParseRunName(spec->diagnostic().run(), "spec.diagnostic.run").status());
  checker->Range("spec.diagnostic.step", spec->diagnostic().step(), 0, kMaxGridPoints);
  if (!spec->inject().empty())
    checker->Add("spec.inject", "a step is replayed as it is", "nothing");
}

namespace {

void CheckKept(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  checker->File("spec.decode.kept", spec.decode().kept());
  for (int i = 0; i < spec.decode().outputs_size(); ++i) {
    if (spec.decode().outputs(i) == v1::ARTIFACT_ROLE_VIDEO) continue;
    checker->Add(absl::StrCat("spec.decode.outputs[", i, "]"), "is not made of kept frames",
                 "VIDEO");
  }
}

}  // namespace

void CheckDecode(v1::JobSpec* spec, SpecChecker* checker) {
  const v1::DecodeSpec& decode = spec->decode();
  if (decode.has_kept()) {
    CheckKept(*spec, checker);
    return;
  }
  const bool of_run = decode.source_case() == v1::DecodeSpec::kRun;
  // Where there is none it is the run's.
  if (!of_run || !spec->checkpoint().empty()) {
    checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  }
  if (of_run) {
    checker->Add(ParseRunName(decode.run(), "spec.decode.run").status());
  } else if (decode.has_latents()) {
    checker->File("spec.decode.latents", decode.latents());
  } else {
    checker->Add("spec.decode", "has no source", "latents, run or kept");
  }
  if (decode.has_generation()) {
    checker->Add("spec.decode.generation", "is what the run was made from", "nothing");
  }
  if (spec->composition().empty()) spec->set_composition(std::string(kDefaultDecoder));
  checker->Composition(kWholeModel, spec);
  std::set<int> outputs;
  for (int i = 0; i < decode.outputs_size(); ++i) {
    const v1::ArtifactRole role = decode.outputs(i);
    const bool is_made = role == v1::ARTIFACT_ROLE_FRAMES || role == v1::ARTIFACT_ROLE_VIDEO ||
                         role == v1::ARTIFACT_ROLE_AUDIO || role == v1::ARTIFACT_ROLE_IMAGE;
    if (is_made && outputs.insert(role).second) continue;
    checker->Add(absl::StrCat("spec.decode.outputs[", i, "]"),
                 is_made ? "is there twice" : "is not made by decoding",
                 "FRAMES, VIDEO, AUDIO, IMAGE, each once");
  }
  const int32_t tile = decode.tile() == 0 ? kDefaultTile : decode.tile();
  checker->Range("spec.decode.tile", tile, 32, kMaxPixels);
  if (decode.has_tile_overlap()) {
    checker->Range("spec.decode.tile_overlap", decode.tile_overlap(), 0, tile / 2);
  }
  if (decode.no_tiling() && (decode.tile() != 0 || decode.has_tile_overlap())) {
    checker->Add("spec.decode.no_tiling", "goes with no tile size", "one or the other");
  }
  if (decode.has_image_frame()) {
    checker->Range("spec.decode.image_frame", decode.image_frame(), 0, kMaxFrames);
  }
  if (decode.has_fps() && !(std::isfinite(decode.fps()) && decode.fps() > 0)) {
    checker->Add("spec.decode.fps", absl::StrCat(decode.fps(), " is not possible"), "more than 0");
  }
  if (!spec->inject().empty()) checker->Add("spec.inject", "decoding has no controls", "nothing");
  if (spec->save_tensors()) {
    checker->Add("spec.save_tensors", "is what the output FRAMES is", "false");
  }
}

}  // namespace plumbline::server
