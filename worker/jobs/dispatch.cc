#include "worker/jobs/dispatch.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "worker/jobs/block_replay.h"
#include "worker/jobs/checkpoint_job.h"
#include "worker/jobs/compare_files.h"
#include "worker/jobs/decode/decode.h"
#include "worker/jobs/full_model.h"
#include "worker/jobs/generation/generation.h"
#include "worker/jobs/identity.h"
#include "worker/jobs/kept_media.h"
#include "worker/jobs/layout.h"
#include "worker/jobs/layout_proto.h"
#include "worker/jobs/media_comparison.h"
#include "worker/jobs/rule_job.h"
#include "worker/jobs/sweep.h"
#include "worker/selftest/selftest.h"

namespace plumbline::jobs {
namespace {

constexpr char kSafetensorsType[] = "application/octet-stream";

// Fetches files and remembers what the request called each, so that messages do too.
class Inputs {
 public:
  explicit Inputs(const JobEnvironment& environment) : environment_(environment) {}

  absl::StatusOr<std::string> Fetch(const v1::InputFile& file, absl::string_view field) {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string path, environment_.fetch(file, field));
    names_.emplace_back(
        path, file.has_artifact() ? file.artifact() : absl::StrCat("worker:", file.worker_path()));
    return path;
  }

  // `status` with the request's names in place of paths on this machine.
  absl::Status Renamed(const absl::Status& status) const {
    absl::Status renamed(status.code(), absl::StrReplaceAll(status.message(), names_));
    std::vector<FieldViolation> violations = GetFieldViolations(status);
    for (FieldViolation& violation : violations) {
      violation.field = absl::StrReplaceAll(violation.field, names_);
      violation.description = absl::StrReplaceAll(violation.description, names_);
    }
    if (!violations.empty()) renamed = WithFieldViolations(std::move(renamed), violations);
    if (const int64_t bytes = GetNeededMemory(status); bytes > 0) {
      renamed = WithNeededMemory(std::move(renamed), bytes);
    }
    const std::string reason = GetReason(status);
    return reason.empty() ? renamed : WithReason(std::move(renamed), reason);
  }

 private:
  const JobEnvironment& environment_;
  std::vector<std::pair<std::string, std::string>> names_;  // By path.
};

// Who computed what: the judged composition's identity and those of the sides beside it, captures
// having none.
absl::Status AddIdentities(const h3::WeightSource& weights, const JobEnvironment& environment,
                           v1::TaskReport* report) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string checkpoint, weights.Identity());
  bool candidate_captured = false;
  std::vector<std::string> sides = {"golden", "provider/default"};
  for (const std::string& captured : report->block_replay().captured()) {
    if (captured == "candidate") {
      candidate_captured = true;
    } else if (captured == "golden") {
      sides.erase(std::remove(sides.begin(), sides.end(), "golden"), sides.end());
    } else {  // The provider, whatever the client calls its capture.
      sides.erase(std::remove(sides.begin(), sides.end(), "provider/default"), sides.end());
    }
  }
  if (!candidate_captured) {
    PLUMBLINE_ASSIGN_OR_RETURN(*report->mutable_identity(),
                               IdentityOf(report->composition(), checkpoint, environment));
  }
  for (const std::string& side : sides) {
    PLUMBLINE_ASSIGN_OR_RETURN((*report->mutable_reference_identities())[side],
                               IdentityOf(side, checkpoint, environment));
  }
  return absl::OkStatus();
}

// "tensors-tiny.safetensors", as a person would save it.
std::string TensorsFileName(const v1::Layout& layout) {
  const absl::StatusOr<h3::LayoutSpec> spec = LayoutFromProto(layout, "layout");
  return spec.ok() ? absl::StrCat("tensors-", LayoutLabel(*spec), ".safetensors")
                   : "tensors.safetensors";
}

absl::StatusOr<JobResult> RunBlockReplay(const v1::JobSpec& spec, const JobEnvironment& environment,
                                         Inputs* inputs) {
  BlockReplayRequest request;
  request.spec = spec;
  const v1::CaptureSet& captures = spec.block_replay().captures();
  const auto fetch = [&](bool given, const v1::InputFile& file, absl::string_view name,
                         std::string* path) -> absl::Status {
    if (!given) return absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(*path,
                               inputs->Fetch(file, absl::StrCat("block_replay.captures.", name)));
    return absl::OkStatus();
  };
  PLUMBLINE_RETURN_IF_ERROR(
      fetch(captures.has_inputs(), captures.inputs(), "inputs", &request.captures.inputs));
  PLUMBLINE_RETURN_IF_ERROR(
      fetch(captures.has_golden(), captures.golden(), "golden", &request.captures.golden));
  for (const auto& [name, file] : captures.providers()) {
    PLUMBLINE_RETURN_IF_ERROR(
        fetch(true, file, absl::StrCat("providers[", name, "]"), &request.captures.provider));
  }
  PLUMBLINE_RETURN_IF_ERROR(fetch(captures.has_candidate(), captures.candidate(), "candidate",
                                  &request.captures.candidate));
  if (spec.save_tensors()) request.save_tensors_path = environment.output_folder + "/tensors";

  PLUMBLINE_ASSIGN_OR_RETURN(const std::shared_ptr<const h3::WeightSource> weights,
                             environment.checkpoints->Open(spec.checkpoint()));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<BlockReplay> replay,
                             BlockReplay::Create(request, *weights, environment.context));
  PLUMBLINE_ASSIGN_OR_RETURN(BlockReplayResult replayed, replay->Run());

  JobResult result;
  v1::TaskReport& report = result.report;
  *report.mutable_block_replay() = std::move(replayed.report);
  *report.mutable_verdict() = std::move(replayed.verdict);
  report.set_composition(replayed.composition);
  report.set_hybrid(replayed.hybrid);
  if (replayed.control.has_value()) *report.mutable_control() = *std::move(replayed.control);
  PLUMBLINE_RETURN_IF_ERROR(AddIdentities(*weights, environment, &report));
  if (spec.save_tensors()) {
    result.files.push_back({request.save_tensors_path, v1::ARTIFACT_ROLE_TENSORS,
                            TensorsFileName(report.block_replay().layout()), kSafetensorsType});
  }
  return result;
}

absl::StatusOr<JobResult> RunFullModelTask(const v1::JobSpec& spec,
                                           const JobEnvironment& environment, Inputs* inputs) {
  FullModelFiles files;
  const v1::CaptureSet& captures = spec.full_model().captures();
  const auto fetch = [&](bool given, const v1::InputFile& file, absl::string_view field,
                         std::string* path) -> absl::Status {
    if (!given) return absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(*path, inputs->Fetch(file, absl::StrCat("full_model.", field)));
    return absl::OkStatus();
  };
  PLUMBLINE_RETURN_IF_ERROR(
      fetch(captures.has_inputs(), captures.inputs(), "captures.inputs", &files.inputs));
  PLUMBLINE_RETURN_IF_ERROR(
      fetch(captures.has_golden(), captures.golden(), "captures.golden", &files.golden));
  for (const auto& [name, file] : captures.providers()) {
    PLUMBLINE_RETURN_IF_ERROR(
        fetch(true, file, absl::StrCat("captures.providers[", name, "]"), &files.providers[name]));
  }
  PLUMBLINE_RETURN_IF_ERROR(fetch(captures.has_candidate(), captures.candidate(),
                                  "captures.candidate", &files.candidate));
  PLUMBLINE_RETURN_IF_ERROR(
      fetch(spec.full_model().has_rule(), spec.full_model().rule(), "rule", &files.rule));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::shared_ptr<const h3::WeightSource> weights,
                             environment.checkpoints->Open(spec.checkpoint()));
  return RunFullModel(spec, files, *weights, environment);
}

absl::StatusOr<JobResult> RunSweepTask(const v1::JobSpec& spec, const JobEnvironment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::shared_ptr<const h3::WeightSource> weights,
                             environment.checkpoints->Open(spec.checkpoint()));
  return RunSweep(spec, *weights, environment);
}

absl::StatusOr<JobResult> RunRuleTask(const v1::RuleSpec& spec, const JobEnvironment& environment,
                                      Inputs* inputs) {
  std::string path, other_path;
  if (spec.has_show()) {
    PLUMBLINE_ASSIGN_OR_RETURN(path, inputs->Fetch(spec.show(), "rule.show"));
  } else if (spec.has_seal()) {
    PLUMBLINE_ASSIGN_OR_RETURN(path, inputs->Fetch(spec.seal(), "rule.seal"));
  } else if (spec.has_compare()) {
    PLUMBLINE_ASSIGN_OR_RETURN(path, inputs->Fetch(spec.compare().a(), "rule.compare.a"));
    PLUMBLINE_ASSIGN_OR_RETURN(other_path, inputs->Fetch(spec.compare().b(), "rule.compare.b"));
  }
  return RunRule(spec, path, other_path, environment.output_folder);
}

absl::StatusOr<JobResult> RunVerdictTask(const v1::VerdictSpec& spec, Inputs* inputs) {
  std::map<std::string, std::string> paths;
  for (const auto& [name, file] : spec.files()) {
    PLUMBLINE_ASSIGN_OR_RETURN(paths[name],
                               inputs->Fetch(file, absl::StrCat("verdict.files[", name, "]")));
  }
  return RunVerdict(paths, spec.public_key_pem());
}

absl::StatusOr<JobResult> RunCheckpointTask(const v1::JobSpec& spec,
                                            const JobEnvironment& environment, Inputs* inputs) {
  std::string manifest;
  const v1::CheckpointSpec& check = spec.checkpoint_check();
  if (check.verify().has_manifest()) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        manifest, inputs->Fetch(check.verify().manifest(), "checkpoint_check.verify.manifest"));
  }
  return RunCheckpointCheck(spec, manifest, environment);
}

absl::StatusOr<JobResult> RunComparison(const v1::ComparisonSpec& spec,
                                        const JobEnvironment& environment, Inputs* inputs) {
  const InputFetcher fetch = [inputs](const v1::InputFile& file, absl::string_view field) {
    return inputs->Fetch(file, field);
  };
  if (spec.has_media()) return RunMediaComparison(spec.media(), fetch, environment);
  if (spec.has_generations()) {
    return RunGenerationComparison(spec.generations(), fetch, environment);
  }
  if (!spec.has_tensors()) {
    return absl::UnimplementedError(
        "comparison: this worker compares tensors, media and generations");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string a,
                             inputs->Fetch(spec.tensors().a(), "comparison.tensors.a"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string b,
                             inputs->Fetch(spec.tensors().b(), "comparison.tensors.b"));
  PLUMBLINE_ASSIGN_OR_RETURN(FileComparison comparison,
                             CompareFiles(a, b, environment.checkpoints->roots(),
                                          environment.threads, environment.context));
  JobResult result;
  *result.report.mutable_tensor_files() = std::move(comparison.report);
  *result.report.mutable_verdict() = std::move(comparison.verdict);
  return result;
}

absl::StatusOr<JobResult> RunLayout(const v1::LayoutSpec& spec, const JobEnvironment& environment) {
  const std::string path = environment.output_folder + "/layout";
  JobResult result;
  PLUMBLINE_ASSIGN_OR_RETURN(*result.report.mutable_layout(), WriteLayout(spec, path));
  result.report.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  result.report.mutable_verdict()->set_sentence("NOT JUDGED: a layout has no gate.");
  std::string file_name = TensorsFileName(result.report.layout().layout());
  result.files.push_back({path, v1::ARTIFACT_ROLE_TENSORS,
                          absl::StrReplaceAll(file_name, {{"tensors-", "layout-"}}),
                          kSafetensorsType});
  return result;
}

absl::StatusOr<GenerationFiles> FetchGenerationFiles(const v1::GenerationSpec& spec,
                                                     Inputs* inputs) {
  GenerationFiles files;
  PLUMBLINE_ASSIGN_OR_RETURN(files.conditioning,
                             inputs->Fetch(spec.conditioning(), "generation.conditioning"));
  if (spec.has_noise()) {
    PLUMBLINE_ASSIGN_OR_RETURN(files.noise, inputs->Fetch(spec.noise(), "generation.noise"));
  }
  return files;
}

absl::StatusOr<JobResult> RunGenerationTask(const v1::JobSpec& spec,
                                            const JobEnvironment& environment, Inputs* inputs) {
  const bool diagnoses = spec.has_diagnostic();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const GenerationFiles files,
      FetchGenerationFiles(diagnoses ? spec.diagnostic().generation() : spec.generation(), inputs));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::shared_ptr<const h3::WeightSource> weights,
                             environment.checkpoints->Open(spec.checkpoint()));
  return diagnoses ? RunDiagnostic(spec, files, *weights, environment)
                   : RunGeneration(spec, files, *weights, environment);
}

absl::StatusOr<JobResult> RunDecodeTask(const v1::JobSpec& spec, const JobEnvironment& environment,
                                        Inputs* inputs) {
  std::string latents;
  GenerationFiles files;
  if (spec.decode().has_kept()) {
    const v1::InputFile& kept = spec.decode().kept();
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string path, inputs->Fetch(kept, "decode.kept"));
    return MakeKeptMedia(path, kept.has_artifact() ? kept.artifact() : kept.worker_path(),
                         environment);
  }
  if (spec.decode().has_run()) {
    PLUMBLINE_ASSIGN_OR_RETURN(files, FetchGenerationFiles(spec.decode().generation(), inputs));
  } else {
    PLUMBLINE_ASSIGN_OR_RETURN(latents, inputs->Fetch(spec.decode().latents(), "decode.latents"));
  }
  return RunDecode(spec, latents, files, environment);
}

std::string KindName(const v1::JobSpec& spec) {
  const google::protobuf::FieldDescriptor* const field =
      v1::JobSpec::descriptor()->FindFieldByNumber(spec.kind_case());
  return field == nullptr ? "(none)" : field->name();
}

absl::StatusOr<JobResult> RunKind(const v1::JobSpec& spec, const JobEnvironment& environment,
                                  Inputs* inputs) {
  switch (spec.kind_case()) {
    case v1::JobSpec::kBlockReplay:
      return RunBlockReplay(spec, environment, inputs);
    case v1::JobSpec::kFullModel:
      return RunFullModelTask(spec, environment, inputs);
    case v1::JobSpec::kGeneration:
    case v1::JobSpec::kDiagnostic:
      return RunGenerationTask(spec, environment, inputs);
    case v1::JobSpec::kDecode:
      return RunDecodeTask(spec, environment, inputs);
    case v1::JobSpec::kSweep:
      return RunSweepTask(spec, environment);
    case v1::JobSpec::kRule:
      return RunRuleTask(spec.rule(), environment, inputs);
    case v1::JobSpec::kVerdict:
      return RunVerdictTask(spec.verdict(), inputs);
    case v1::JobSpec::kComparison:
      return RunComparison(spec.comparison(), environment, inputs);
    case v1::JobSpec::kCheckpointCheck:
      return RunCheckpointTask(spec, environment, inputs);
    case v1::JobSpec::kSelftest:
      return selftest::RunSelftest(environment, RunJob);
    case v1::JobSpec::kLayout:
      return RunLayout(spec.layout(), environment);
    default:
      return absl::UnimplementedError(absl::StrCat(
          "this worker does no jobs of kind ", KindName(spec),
          "; it does block_replay, full_model, generation, diagnostic, decode, sweep, rule, "
          "verdict, comparison, checkpoint_check, layout, selftest"));
  }
}

}  // namespace

absl::StatusOr<JobResult> RunJob(const v1::JobSpec& spec, const JobEnvironment& environment) {
  Inputs inputs(environment);
  const absl::Time start = environment.context.clock->Now();
  absl::StatusOr<JobResult> result = RunKind(spec, environment, &inputs);
  if (!result.ok()) return inputs.Renamed(result.status());
  result->report.set_wall_seconds(absl::ToDoubleSeconds(environment.context.clock->Now() - start));
  return result;
}

}  // namespace plumbline::jobs
