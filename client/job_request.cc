#include "client/job_request.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/layout_text.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr absl::string_view kSynthetic = "synthetic:";
constexpr absl::string_view kWorker = "worker:";

// Links followed where the path is there; what is not there is the worker's to refuse.
std::string AbsolutePath(absl::string_view path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(std::string(path), error);
  if (!error) absolute = std::filesystem::weakly_canonical(absolute, error);
  return error ? std::string(path) : absolute.string();
}

// synthetic:CONFIG.json[:SEED] names a file, synthetic:NAME[:SEED] does not.
std::string AbsoluteCheckpoint(const std::string& written) {
  absl::string_view rest = written;
  if (!absl::ConsumePrefix(&rest, kSynthetic)) return AbsolutePath(written);
  std::string seed;
  if (const size_t colon = rest.rfind(':'); colon != absl::string_view::npos) {
    seed = std::string(rest.substr(colon));
    rest.remove_suffix(seed.size());
  }
  if (!absl::EndsWith(rest, ".json")) return written;
  return absl::StrCat(kSynthetic, AbsolutePath(rest), seed);
}

absl::Status FillJobFlags(const JobFlags& flags, JobRequest* request) {
  v1::JobSpec& spec = request->spec;
  for (const std::string& label : flags.labels) {
    PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--label", label, "K=V"));
    if (!spec.mutable_labels()->insert({pair.first, pair.second}).second) {
      return FieldError("--label", absl::StrCat("label ", Quoted(pair.first), " given twice"));
    }
  }
  spec.set_priority(flags.priority);
  request->report = flags.report;
  request->flags.Add("labels", "--label", "");
  request->flags.Add("priority", "--priority", "");
  return absl::OkStatus();
}

// One flag that names an input file.
absl::Status FillInput(absl::string_view flag, absl::string_view field, const std::string& written,
                       const InputResolver& resolve, v1::InputFile* input, FlagNames* names) {
  names->Add(field, flag, written);
  PLUMBLINE_ASSIGN_OR_RETURN(*input, resolve(flag, written));
  return absl::OkStatus();
}

absl::Status FillCaptures(const SubmitBlockReplay& flags, const InputResolver& resolve,
                          v1::CaptureSet* captures, FlagNames* names) {
  if (!flags.inputs.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--inputs", "block_replay.captures.inputs", flags.inputs,
                                        resolve, captures->mutable_inputs(), names));
  }
  if (!flags.golden.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--golden", "block_replay.captures.golden", flags.golden,
                                        resolve, captures->mutable_golden(), names));
  }
  if (!flags.candidate.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--candidate", "block_replay.captures.candidate",
                                        flags.candidate, resolve, captures->mutable_candidate(),
                                        names));
  }
  for (const std::string& provider : flags.providers) {
    PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--provider", provider, "NAME=FILE"));
    if (captures->providers().contains(pair.first)) {
      return FieldError("--provider", absl::StrCat(Quoted(pair.first), " given twice"));
    }
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--provider", "block_replay.captures.providers",
                                        pair.second, resolve,
                                        &(*captures->mutable_providers())[pair.first], names));
  }
  return absl::OkStatus();
}

absl::Status FillLayouts(const SubmitBlockReplay& flags, v1::BlockReplaySpec* spec,
                         FlagNames* names) {
  const auto add = [&](absl::string_view flag, const std::string& text) -> absl::Status {
    PLUMBLINE_ASSIGN_OR_RETURN(*spec->add_layouts(), ParseLayout(flag, text));
    names->Add(absl::StrCat("block_replay.layouts[", spec->layouts_size() - 1, "]"), flag, text);
    return absl::OkStatus();
  };
  for (const std::string& name : flags.layouts) PLUMBLINE_RETURN_IF_ERROR(add("--layouts", name));
  for (const std::string& sizes : flags.layout) PLUMBLINE_RETURN_IF_ERROR(add("--layout", sizes));
  names->Add("block_replay.layouts", flags.layouts.empty() ? "--layout" : "--layouts", "");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::pair<std::string, std::string>> ParsePair(absl::string_view flag,
                                                              absl::string_view written,
                                                              absl::string_view form) {
  const size_t equals = written.find('=');
  if (equals == absl::string_view::npos || equals == 0 || equals + 1 == written.size()) {
    return FieldError(flag, absl::StrCat(Quoted(written), " has not the right form"), form);
  }
  return std::make_pair(std::string(written.substr(0, equals)),
                        std::string(written.substr(equals + 1)));
}

bool ParseWorkerPath(absl::string_view written, PathStyle paths, v1::InputFile* input) {
  if (!absl::ConsumePrefix(&written, kWorker)) return false;
  input->set_worker_path(paths == PathStyle::kAbsolute ? AbsolutePath(written)
                                                       : std::string(written));
  return true;
}

bool HasUploads(const SubmitBlockReplay& flags) {
  const auto is_local = [](absl::string_view written) {
    return !written.empty() && !absl::StartsWith(written, kWorker);
  };
  if (is_local(flags.inputs) || is_local(flags.golden) || is_local(flags.candidate)) return true;
  for (const absl::string_view provider : flags.providers) {
    const size_t equals = provider.find('=');
    if (equals != absl::string_view::npos && is_local(provider.substr(equals + 1))) return true;
  }
  return false;
}

absl::StatusOr<JobRequest> BlockReplayRequest(const SubmitBlockReplay& flags, PathStyle paths,
                                              const InputResolver& resolve) {
  JobRequest request;
  v1::JobSpec& spec = request.spec;
  v1::BlockReplaySpec& replay = *spec.mutable_block_replay();
  spec.set_checkpoint(paths == PathStyle::kAbsolute ? AbsoluteCheckpoint(flags.checkpoint)
                                                    : flags.checkpoint);
  spec.set_composition(flags.composition);
  spec.set_inject(flags.inject);
  spec.set_save_tensors(!flags.save_tensors.empty());
  replay.set_block(flags.block);
  replay.set_backward(flags.backward);
  request.flags.Add("checkpoint", "--checkpoint", flags.checkpoint);
  request.flags.Add("composition", "--composition", flags.composition);
  request.flags.Add("inject", "--inject", flags.inject);
  request.flags.Add("save_tensors", "--save-tensors", flags.save_tensors);
  request.flags.Add("block_replay.block", "--block", "");
  request.flags.Add("block_replay.backward", "--backward", "");
  PLUMBLINE_RETURN_IF_ERROR(FillLayouts(flags, &replay, &request.flags));
  const bool has_captures = !flags.inputs.empty() || !flags.golden.empty() ||
                            !flags.candidate.empty() || !flags.providers.empty();
  if (has_captures) {
    PLUMBLINE_RETURN_IF_ERROR(
        FillCaptures(flags, resolve, replay.mutable_captures(), &request.flags));
  }
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.wait = flags.job.wait || !flags.job.report.empty() || !flags.save_tensors.empty();
  return request;
}

absl::StatusOr<JobRequest> ComparisonRequest(const CompareFiles& flags,
                                             const InputResolver& resolve) {
  JobRequest request;
  v1::ComparisonSpec::FilePair& pair = *request.spec.mutable_comparison()->mutable_tensors();
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("A", "comparison.tensors.a", flags.a, resolve, pair.mutable_a(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("B", "comparison.tensors.b", flags.b, resolve, pair.mutable_b(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> LayoutRequest(const BuildLayout& flags) {
  JobRequest request;
  request.flags.Add("layout.layout", "--layout", flags.layout);
  PLUMBLINE_ASSIGN_OR_RETURN(*request.spec.mutable_layout()->mutable_layout(),
                             ParseLayout("--layout", flags.layout));
  request.spec.set_save_tensors(true);
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.wait = true;
  return request;
}

}  // namespace plumbline::client
