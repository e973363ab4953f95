#include "worker/jobs/generation/setup.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mapped_file.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/decoders/tiling.h"
#include "worker/h3/numerical_identity.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/identity.h"

namespace plumbline::jobs {
namespace {

constexpr char kContractField[] = "generation.contract";
constexpr char kConditioningField[] = "generation.conditioning";
constexpr char kNoiseField[] = "generation.noise";
constexpr char kJobKind[] = "generation";

absl::StatusOr<SafetensorsFile> Open(absl::string_view field, const std::string& path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (file.ok()) return file;
  return FieldError(field, file.status().message(), "a safetensors file");
}

std::map<std::string, std::string> PartsOf(const v1::NumericalIdentity& identity) {
  std::map<std::string, std::string> parts;
  for (const v1::IdentityPart& part : identity.parts()) parts[part.name()] = part.value();
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GenerationSetup>> GenerationSetup::Make(
    const Request& request, const GenerationFiles& files, const h3::WeightSource& weights,
    const JobEnvironment& environment) {
  std::unique_ptr<GenerationSetup> setup(new GenerationSetup(request, files, weights, environment));
  PLUMBLINE_RETURN_IF_ERROR(setup->ReadContract());
  PLUMBLINE_RETURN_IF_ERROR(setup->ReadFiles());
  PLUMBLINE_RETURN_IF_ERROR(setup->Resolve(request));
  PLUMBLINE_RETURN_IF_ERROR(setup->OpenDecoders(request));
  if (request.identify) PLUMBLINE_RETURN_IF_ERROR(setup->Identify());
  return setup;
}

absl::Status GenerationSetup::ReadContract() {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto printed = google::protobuf::util::MessageToJsonString(spec.contract(), &json, options);
  if (!printed.ok()) return FieldError(kContractField, printed.ToString());
  PLUMBLINE_ASSIGN_OR_RETURN(contract, h3::ParseGenerationContract(json, kContractField));
  PLUMBLINE_RETURN_IF_ERROR(h3::CheckContractFits(contract, weights.config(), kContractField));
  PLUMBLINE_ASSIGN_OR_RETURN(sampler,
                             h3::Sampler::Create(kContractField, contract.num_inference_steps,
                                                 contract.video_shift, contract.audio_shift));
  return absl::OkStatus();
}

absl::Status GenerationSetup::ReadFiles() {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                             Open(kConditioningField, files.conditioning));
  absl::StatusOr<h3::Conditioning> read = h3::ReadConditioning(file, weights.config(), contract);
  if (!read.ok()) return AnnotateStatus(read.status(), kConditioningField);
  conditioning = *std::move(read);
  PLUMBLINE_ASSIGN_OR_RETURN(layout, h3::GenerationLayout(contract, conditioning, kContractField));
  if (contract.checkpoint_sha256.empty() && contract.conditioning_sha256.empty()) {
    return absl::OkStatus();
  }
  // Dear at the released size, so only where the contract asks.
  std::string checkpoint_sha256;
  if (!contract.checkpoint_sha256.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(checkpoint_sha256, weights.Digest());
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const MappedFile bytes, MappedFile::Open(files.conditioning));
  return h3::CheckContractDigests(contract, checkpoint_sha256, Sha256Hex(bytes.bytes()),
                                  kContractField);
}

absl::Status GenerationSetup::Resolve(const Request& request) {
  PLUMBLINE_ASSIGN_OR_RETURN(
      composition,
      h3::ParseComposition(request.composition.empty() ? "candidate" : request.composition));
  graph = h3::BuildTransformerGraph(weights.config());
  PLUMBLINE_ASSIGN_OR_RETURN(
      resolved, h3::ResolveComposition(composition, graph, *environment.context.registry,
                                       environment.context.device->kind()));
  if (request.inject.empty()) return absl::OkStatus();
  fault = FindFault(kJobKind, request.inject);
  if (fault != nullptr) return absl::OkStatus();
  return FieldError("inject", absl::StrCat("there is no fault ", Quoted(request.inject)),
                    FaultNames(kJobKind));
}

// Everything that would keep a run from being decoded is found before its first step.
absl::Status GenerationSetup::OpenDecoders(const Request& request) {
  if (spec.latents_only()) return absl::OkStatus();
  if (const auto clips = h3::PlanClips(h3::ReleasedVideoDecoder(), layout.latent_frames);
      !clips.ok()) {
    not_decodable = std::string(clips.status().message());
    return absl::OkStatus();
  }
  if (request.checkpoint.empty()) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(h3::DecoderWeights opened,
                             environment.checkpoints->OpenDecoders(request.checkpoint));
  const int64_t rate = opened.audio_config.sampling_rate;
  if (contract.sampling_rate != rate) {
    return FieldError(absl::StrCat(kContractField, ".sampling_rate"),
                      absl::StrCat(contract.sampling_rate, " is not the decoder's"),
                      absl::StrCat(rate));
  }
  const h3::Graph video = h3::BuildVideoDecoderGraph(opened.video_config);
  const h3::Graph audio = h3::BuildAudioDecoderGraph(opened.audio_config);
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition decoder, h3::ParseComposition(contract.decoder));
  const auto resolvable = h3::ResolveDecoders(decoder, video, audio, *environment.context.registry,
                                              environment.context.device->kind());
  if (!resolvable.ok()) {
    return FieldError(absl::StrCat(kContractField, ".decoder"), resolvable.status().message());
  }
  decoders = std::move(opened);
  return absl::OkStatus();
}

absl::Status GenerationSetup::Identify() {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string checkpoint, weights.Identity());
  PLUMBLINE_ASSIGN_OR_RETURN(numerical_identity,
                             IdentityOf(composition.ToString(), checkpoint, environment));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<h3::NoiseSource> noise, OpenNoise());
  std::map<std::string, std::string> parts = PartsOf(numerical_identity);
  parts["contract"] = h3::ContractDigest(contract);
  parts["conditioning"] = conditioning.sha256;
  parts["noise"] = noise->Identity();
  parts["seed"] = absl::StrCat(seed);
  if (fault != nullptr) parts["fault"] = std::string(fault->name);
  for (const auto& [name, value] : parts) {
    v1::IdentityPart& part = *run_identity.add_parts();
    part.set_name(name);
    part.set_value(value);
  }
  run_identity.set_sha256(Sha256Hex(h3::CanonicalIdentityJson(parts)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<h3::NoiseSource>> GenerationSetup::OpenNoise() const {
  if (files.noise.empty()) {
    return h3::MakeGeneratorNoise(contract.rng, seed, environment.context.device);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile file, Open(kNoiseField, files.noise));
  absl::StatusOr<std::unique_ptr<h3::NoiseSource>> noise =
      h3::MakeFileNoise(std::move(file), weights.config(), layout);
  if (!noise.ok()) return AnnotateStatus(noise.status(), kNoiseField);
  return noise;
}

std::string GenerationSetup::RunName() const {
  return absl::StrCat("runs/", run_identity.sha256());
}

absl::Status GenerationSetup::CheckAuthorised() const {
  const bool is_reference =
      !composition.IsHybrid() &&
      (composition.base == "golden" || absl::StartsWith(composition.base, "provider/"));
  if (is_reference || preflight() || fault != nullptr) return absl::OkStatus();
  const auto& gate = environment.generation.gate_identity;
  if (!gate.has_value()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          composition.ToString(), " needs the full-model gate that it passed ",
                          "(gate), or to be marked as a preflight (preflight)")),
                      "NO_GATE");
  }
  if (gate->sha256() == numerical_identity.sha256()) return absl::OkStatus();
  const std::vector<std::string> differing =
      h3::DifferingParts(PartsOf(*gate), PartsOf(numerical_identity));
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the gate was passed under another numerical identity: ", absl::StrJoin(differing, ", "),
          differing.size() == 1 ? " differs" : " differ")),
      "IDENTITY_DIFFERS");
}

absl::StatusOr<uint64_t> SeedOfTask(const v1::GenerationSpec& spec) {
  const auto& known = spec.contract().seeds();
  const auto& wanted = spec.seeds().empty() ? known : spec.seeds();
  if (wanted.size() != 1) {
    return FieldError("generation.seeds",
                      absl::StrCat("one task makes one seed, not ", wanted.size()), "one seed");
  }
  if (std::find(known.begin(), known.end(), wanted[0]) == known.end()) {
    return FieldError("generation.seeds", absl::StrCat(wanted[0], " is not in the contract"),
                      absl::StrJoin(known, ", "));
  }
  return wanted[0];
}

}  // namespace plumbline::jobs
