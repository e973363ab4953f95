// Requests for generations, and for what is diagnosed of them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/measure_text.h"
#include "client/request_parts.h"
#include "common/files.h"
#include "common/json.h"
#include "common/status.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace plumbline::client {
namespace {

constexpr char kContractFlag[] = "--contract";
constexpr size_t kMaxContractBytes = 1 << 20;

// "line 3: " for an error that begins with a field of the object `text`, "sedes: ..." or
// "(num_frames): ..."; empty where that is not to be found.
std::string LineOfField(absl::string_view text, absl::string_view error) {
  absl::string_view field = error.substr(0, error.find(':'));
  if (absl::ConsumePrefix(&field, "(")) absl::ConsumeSuffix(&field, ")");
  const size_t place = text.find(absl::StrCat("\"", field, "\""));
  if (field.empty() || place == absl::string_view::npos) return "";
  return absl::StrCat("line ", 1 + std::count(text.begin(), text.begin() + place, '\n'), ": ");
}

// Names that the message does not have are refused here; whether values are possible is for the
// service to say.
absl::StatusOr<v1::GenerationContract> ReadContract(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxContractBytes);
  if (!text.ok()) return FieldError(kContractFlag, text.status().message(), "a JSON file");
  // Its errors have a line.
  const absl::Status is_json = ParseJson(*text, path).status();
  if (!is_json.ok()) return FieldError(kContractFlag, is_json.message(), "a JSON file");
  v1::GenerationContract contract;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &contract);
  if (!parsed.ok()) {
    const absl::string_view error(parsed.message().data(), parsed.message().size());
    return FieldError(
        kContractFlag, absl::StrCat(path, " is no contract: ", LineOfField(*text, error), error),
        "a JSON object with seeds, num_frames, height, width, num_inference_steps and the other "
        "fields of a contract");
  }
  return contract;
}

}  // namespace

absl::StatusOr<JobRequest> GenerationRequest(const SubmitGeneration& flags, PathStyle paths,
                                             const InputResolver& resolve) {
  JobRequest request;
  FlagNames& names = request.flags;
  v1::JobSpec& spec = request.spec;
  v1::GenerationSpec& generation = *spec.mutable_generation();
  FillCheckpoint(flags.checkpoint, paths, &request);
  spec.set_composition(flags.composition);
  spec.set_inject(flags.inject);
  spec.set_save_tensors(!flags.save_tensors.empty());
  names.Add("composition", "--composition", flags.composition);
  names.Add("inject", "--inject", flags.inject);
  names.Add("save_tensors", "--save-tensors", flags.save_tensors);
  names.AddFile("generation.contract", kContractFlag, flags.contract);
  PLUMBLINE_ASSIGN_OR_RETURN(*generation.mutable_contract(), ReadContract(flags.contract));
  PLUMBLINE_RETURN_IF_ERROR(FillInput("--conditioning", "generation.conditioning",
                                      flags.conditioning, resolve,
                                      generation.mutable_conditioning(), &names));
  if (!flags.noise.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--noise", "generation.noise", flags.noise, resolve,
                                        generation.mutable_noise(), &names));
  }
  PLUMBLINE_RETURN_IF_ERROR(
      FillSeeds(flags.seeds, "generation.seeds", generation.mutable_seeds(), &names));
  if (!flags.gate.empty()) generation.set_gate(JobName(flags.gate));
  if (flags.preflight) generation.set_preflight(true);
  if (!flags.against.empty()) generation.set_against(JobName(flags.against));
  for (const std::string& job : flags.spread) generation.add_spread(JobName(job));
  if (!flags.repeat.empty()) generation.set_repeat(JobName(flags.repeat));
  names.Add("generation.spread", "--spread", "");
  names.Add("generation.repeat", "--repeat", flags.repeat);
  generation.set_verify_last_step(flags.verify_last_step);
  generation.set_latents_only(flags.latents_only);
  names.Add("generation.gate", "--gate", flags.gate);
  names.Add("generation.preflight", "--preflight", "");
  names.Add("generation.authorisation", "--gate", flags.gate);
  names.Add("generation.against", "--against", flags.against);
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.bundle = flags.bundle;
  request.wait = flags.job.wait || !flags.job.report.empty() || !flags.save_tensors.empty() ||
                 !flags.bundle.empty();
  return request;
}

absl::StatusOr<JobRequest> DiagnosticRequest(const SubmitDiagnostic& flags,
                                             const std::string& run) {
  JobRequest request;
  request.spec.set_composition(flags.composition);
  v1::DiagnosticSpec& diagnostic = *request.spec.mutable_diagnostic();
  diagnostic.set_run(run);
  diagnostic.set_step(flags.step);
  request.flags.Add("composition", "--composition", flags.composition);
  request.flags.Add("diagnostic.run", "--run", flags.run);
  request.flags.Add("diagnostic.step", "--step", "");
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = flags.job.wait || !flags.job.report.empty();
  return request;
}

}  // namespace plumbline::client
