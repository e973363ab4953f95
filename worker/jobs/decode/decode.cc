#include "worker/jobs/decode/decode.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/jobs/decode/decoding.h"
#include "worker/jobs/decode/latents.h"
#include "worker/jobs/generation/replay.h"

namespace plumbline::jobs {
namespace {

constexpr char kDefaultComposition[] = "golden";

// The latents behind the last step of a run.
absl::Status ReadRun(const v1::JobSpec& spec, const GenerationFiles& files,
                     const JobEnvironment& environment, DecodingRequest* request) {
  const v1::DecodeSpec& decode = spec.decode();
  steps::StepStore* const store = environment.generation.steps;
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, store->GetRun(decode.run()));
  if (run.decodes()) {
    return FieldError("decode.run", absl::StrCat(run.name(), " is what was decoded"),
                      "the run of a generation");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::shared_ptr<const h3::WeightSource> weights,
                             environment.checkpoints->Open(spec.checkpoint()));
  // Nothing is evaluated, so no composition matters.
  GenerationSetup::Request setup_request = {decode.generation(), kDefaultComposition,
                                            /*inject=*/"", /*save_tensors=*/false, run.seed()};
  setup_request.identify = false;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationSetup> setup,
                             GenerationSetup::Make(setup_request, files, *weights, environment));
  PLUMBLINE_ASSIGN_OR_RETURN(const GenerationState state,
                             ReplayWholeRun(run, *setup, store, "decode.run"));
  request->latents = LatentsOf(*setup, state);
  request->decode_of = run.name();
  request->seed = run.seed();
  request->preflight = run.preflight();
  request->frames_per_second = setup->contract.fps;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobResult> RunDecode(const v1::JobSpec& spec, const std::string& latents,
                                    const GenerationFiles& files,
                                    const JobEnvironment& environment) {
  const v1::DecodeSpec& decode = spec.decode();
  DecodingRequest request;
  request.field = "decode.";
  request.composition = spec.composition().empty() ? kDefaultComposition : spec.composition();
  PLUMBLINE_ASSIGN_OR_RETURN(request.weights,
                             environment.checkpoints->OpenDecoders(spec.checkpoint()));
  if (decode.has_run()) {
    PLUMBLINE_RETURN_IF_ERROR(ReadRun(spec, files, environment, &request));
  } else {
    PLUMBLINE_ASSIGN_OR_RETURN(request.latents, ReadLatents(latents, "decode.latents"));
  }
  if (decode.has_fps()) request.frames_per_second = decode.fps();
  request.tiling.enabled = !decode.no_tiling();
  if (decode.tile() != 0) request.tiling.tile = decode.tile();
  if (decode.has_tile_overlap()) request.tiling.overlap = decode.tile_overlap();
  for (const int role : decode.outputs()) {
    request.outputs.roles.push_back(static_cast<v1::ArtifactRole>(role));
  }
  if (request.outputs.roles.empty()) request.outputs.roles = {v1::ARTIFACT_ROLE_FRAMES};
  request.outputs.frames.frames_u8 = decode.frames_u8();
  request.outputs.frames.decoded = true;
  if (decode.has_image_frame()) request.outputs.image_frame = decode.image_frame();

  const std::string source = request.decode_of.empty() ? "a file" : request.decode_of;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Decoding> decoding,
                             Decoding::Make(std::move(request), environment));
  PLUMBLINE_ASSIGN_OR_RETURN(DecodingResult decoded, decoding->Run());

  JobResult result;
  v1::TaskReport& report = result.report;
  decoded.report.set_source(source);
  report.set_composition(decoded.report.composition());
  report.set_hybrid(decoded.hybrid);
  *report.mutable_identity() = std::move(decoded.identity);
  report.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  report.mutable_verdict()->set_sentence(
      absl::StrCat("NOT JUDGED: ", DescribeDecoded(decoded.report), "."));
  *report.mutable_decode() = std::move(decoded.report);
  result.files = std::move(decoded.files);
  return result;
}

}  // namespace plumbline::jobs
