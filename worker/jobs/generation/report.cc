// What a generation's report says.
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/drift/faults.h"
#include "worker/drift/generation_verdict.h"
#include "worker/jobs/decode/decoding.h"
#include "worker/jobs/generation/replay.h"
#include "worker/jobs/generation/run.h"
#include "worker/jobs/generation/sensitivity.h"
#include "worker/jobs/layout_proto.h"

namespace plumbline::jobs {
namespace {

constexpr char kSafetensorsType[] = "application/octet-stream";

v1::TensorDigest NoiseDigest(const h3::InitialRows::Noise& noise) {
  v1::TensorDigest digest;
  digest.set_name(noise.draw.name);
  digest.set_dtype(std::string(DTypeName(DType::kF32)));
  int64_t size_bytes = sizeof(float);
  for (int64_t extent : noise.draw.shape) {
    digest.add_shape(extent);
    size_bytes *= extent;
  }
  digest.set_size_bytes(size_bytes);
  digest.set_sha256(noise.sha256);
  return digest;
}

}  // namespace

absl::Status GenerationRun::Describe() {
  report_.set_seed(setup_.seed);
  report_.set_run(run_);
  *report_.mutable_identity() = setup_.run_identity;
  // The canonical text is the message's own JSON, defaults included.
  const auto read = google::protobuf::util::JsonStringToMessage(
      h3::CanonicalContractJson(setup_.contract), report_.mutable_contract());
  if (!read.ok()) return absl::InternalError(absl::StrCat("contract: ", read.ToString()));
  *report_.mutable_layout() = LayoutToProto(setup_.layout);
  report_.set_gate(setup_.spec.gate());
  report_.set_preflight(setup_.preflight());
  for (const h3::InitialRows::Noise& noise : state_->noise()) {
    *report_.add_noise() = NoiseDigest(noise);
  }
  return absl::OkStatus();
}

absl::StatusOr<JobResult> GenerationRun::Finish() {
  JobResult result;
  v1::TaskReport& task = result.report;
  for (const v1::GenerationReport::Step& step : report_.steps()) {
    const bool replayed = step.origin() == v1::STEP_ORIGIN_REPLAYED;
    const bool recomputed = step.origin() == v1::STEP_ORIGIN_RECOMPUTED;
    report_.set_steps_replayed(report_.steps_replayed() + (replayed ? 1 : 0));
    report_.set_steps_recomputed(report_.steps_recomputed() + (recomputed ? 1 : 0));
    report_.set_steps_computed(report_.steps_computed() + (replayed || recomputed ? 0 : 1));
  }
  for (const std::string& input : SensitiveInputs(state_->layout())) {
    const auto check = sensitivity_.find(input);
    if (check != sensitivity_.end()) *report_.add_sensitivity() = check->second;
  }
  report_.set_reused(environment_.attempt == 1 &&
                     report_.steps_replayed() == report_.steps_size() &&
                     report_.steps_size() == setup_.Steps());
  if (state_->finished()) {
    const std::string path = setup_.environment.output_folder + "/latents";
    Latents latents = LatentsOf(setup_, *state_);
    PLUMBLINE_RETURN_IF_ERROR(WriteLatents(path, latents));
    const std::vector<v1::TensorDigest> digests = DigestLatents(latents);
    report_.mutable_latents()->Add(digests.begin(), digests.end());
    result.files.push_back({path, v1::ARTIFACT_ROLE_LATENTS,
                            absl::StrCat("latents-", setup_.seed, ".safetensors"),
                            kSafetensorsType});
    PLUMBLINE_RETURN_IF_ERROR(Decode(std::move(latents), &result));
  }
  if (tensors_.has_value() && state_->finished()) {
    PLUMBLINE_RETURN_IF_ERROR(tensors_->Finish(*state_));
    result.files.push_back({TensorsPath(), v1::ARTIFACT_ROLE_TENSORS,
                            absl::StrCat("tensors-", setup_.seed, ".safetensors"),
                            kSafetensorsType});
  }
  *task.mutable_verdict() = MakeVerdict();
  task.set_composition(setup_.composition.ToString());
  task.set_hybrid(setup_.composition.IsHybrid());
  *task.mutable_identity() = setup_.numerical_identity;
  if (setup_.fault != nullptr) {
    *task.mutable_control() = drift::JudgeControl(*setup_.fault, task.mutable_verdict());
  }
  *task.mutable_generation() = std::move(report_);
  return result;
}

absl::Status GenerationRun::Decode(Latents latents, JobResult* result) {
  if (setup_.spec.latents_only()) return absl::OkStatus();
  if (failure_.has_value() || setup_.fault != nullptr) {
    report_.set_not_decoded(failure_.has_value() ? "the run failed" : "a control makes no media");
    return absl::OkStatus();
  }
  if (!setup_.decoders.has_value()) {
    report_.set_not_decoded(setup_.not_decodable);
    return absl::OkStatus();
  }
  calls_.reset();  // The decoders have the device's memory now.
  DecodingRequest request;
  request.weights = *setup_.decoders;
  request.composition = setup_.contract.decoder;
  request.latents = std::move(latents);
  request.frames_per_second = setup_.contract.fps;
  request.outputs.roles = {v1::ARTIFACT_ROLE_FRAMES, v1::ARTIFACT_ROLE_VIDEO};
  request.outputs.suffix = absl::StrCat("-", setup_.seed);
  request.decode_of = run_;
  request.seed = setup_.seed;
  request.preflight = setup_.preflight();
  request.field = "generation.contract.";
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Decoding> decoding,
                             Decoding::Make(std::move(request), setup_.environment));
  PLUMBLINE_ASSIGN_OR_RETURN(DecodingResult decoded, decoding->Run());
  report_.set_media_pending(decoded.report.media_pending());
  decoded.report.set_source(run_);
  *report_.mutable_decoded() = std::move(decoded.report);
  for (OutputFile& file : decoded.files) result->files.push_back(std::move(file));
  return absl::OkStatus();
}

std::string GenerationRun::TensorsPath() const {
  return setup_.environment.output_folder + "/tensors";
}

v1::Verdict GenerationRun::MakeVerdict() const {
  std::vector<std::string> qualifications;
  if (setup_.composition.IsHybrid()) {
    qualifications.push_back("hybrid composition: diagnostic only");
  }
  for (const std::string& empty : setup_.resolved.empty_overrides) {
    qualifications.push_back(absl::StrCat(empty, " names no node of this model"));
  }
  if (setup_.preflight()) qualifications.push_back("preflight: not citable");
  if (setup_.fault != nullptr) {
    qualifications.push_back(absl::StrCat("fault ", setup_.fault->name, " injected"));
  }
  return drift::GenerationVerdict(setup_.seed, setup_.Steps(), failure_, qualifications);
}

}  // namespace plumbline::jobs
