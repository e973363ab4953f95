#include "client/request_parts.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/layout_text.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr absl::string_view kSynthetic = "synthetic:";
constexpr absl::string_view kWorker = "worker:";

// As many as one --seeds may name; how many a job may have is for the service to say.
constexpr uint64_t kMaxSeeds = 1 << 20;
constexpr absl::string_view kSeedsForm =
    "whole numbers and ranges FIRST..LAST, e.g. 0..9 or 1,4,7..9";

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

void FillCheckpoint(const std::string& written, PathStyle paths, JobRequest* request,
                    absl::string_view flag) {
  request->spec.set_checkpoint(paths == PathStyle::kAbsolute ? AbsoluteCheckpoint(written)
                                                             : written);
  request->flags.Add("checkpoint", flag, written);
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

absl::Status FillInput(absl::string_view flag, absl::string_view field, const std::string& written,
                       const InputResolver& resolve, v1::InputFile* input, FlagNames* names) {
  names->AddFile(field, flag, written);
  PLUMBLINE_ASSIGN_OR_RETURN(*input, resolve(flag, written));
  return absl::OkStatus();
}

bool HasCaptures(const CaptureFlags& flags) {
  return !flags.inputs.empty() || !flags.golden.empty() || !flags.candidate.empty() ||
         !flags.providers.empty();
}

bool IsUpload(absl::string_view written) {
  return !written.empty() && !absl::StartsWith(written, kWorker);
}

bool HasUploads(const CaptureFlags& flags) {
  if (IsUpload(flags.inputs) || IsUpload(flags.golden) || IsUpload(flags.candidate)) return true;
  return std::any_of(
      flags.providers.begin(), flags.providers.end(), [](absl::string_view provider) {
        const size_t equals = provider.find('=');
        return equals != absl::string_view::npos && IsUpload(provider.substr(equals + 1));
      });
}

absl::Status FillCaptures(const CaptureFlags& flags, absl::string_view field,
                          const InputResolver& resolve, v1::CaptureSet* captures,
                          FlagNames* names) {
  const auto fill = [&](absl::string_view flag, absl::string_view name, const std::string& written,
                        v1::InputFile* (v1::CaptureSet::*input)()) -> absl::Status {
    if (written.empty()) return absl::OkStatus();
    return FillInput(flag, absl::StrCat(field, ".", name), written, resolve, (captures->*input)(),
                     names);
  };
  PLUMBLINE_RETURN_IF_ERROR(
      fill("--inputs", "inputs", flags.inputs, &v1::CaptureSet::mutable_inputs));
  PLUMBLINE_RETURN_IF_ERROR(
      fill("--golden", "golden", flags.golden, &v1::CaptureSet::mutable_golden));
  PLUMBLINE_RETURN_IF_ERROR(
      fill("--candidate", "candidate", flags.candidate, &v1::CaptureSet::mutable_candidate));
  for (const std::string& provider : flags.providers) {
    PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--provider", provider, "NAME=FILE"));
    if (captures->providers().contains(pair.first)) {
      return FieldError("--provider", absl::StrCat(Quoted(pair.first), " given twice"));
    }
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--provider", absl::StrCat(field, ".providers"),
                                        pair.second, resolve,
                                        &(*captures->mutable_providers())[pair.first], names));
  }
  return absl::OkStatus();
}

absl::Status FillSeeds(const std::string& written, absl::string_view field,
                       google::protobuf::RepeatedField<uint64_t>* to, FlagNames* names) {
  names->Add(field, "--seeds", written);
  for (absl::string_view part : absl::StrSplit(written, ',')) {
    if (written.empty()) break;
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits("..", 1));
    uint64_t first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        last < first) {
      return FieldError("--seeds", absl::StrCat(Quoted(part), " names no seeds"), kSeedsForm);
    }
    if (last - first >= kMaxSeeds) {
      return FieldError("--seeds",
                        absl::StrCat(Quoted(part), " names more than ", kMaxSeeds, " seeds"),
                        kSeedsForm);
    }
    for (uint64_t offset = 0; offset <= last - first; ++offset) to->Add(first + offset);
  }
  return absl::OkStatus();
}

absl::Status FillLayouts(const std::vector<std::string>& layouts,
                         const std::vector<std::string>& layout, absl::string_view field,
                         google::protobuf::RepeatedPtrField<v1::Layout>* to, FlagNames* names) {
  const auto add = [&](absl::string_view flag, const std::string& text) -> absl::Status {
    PLUMBLINE_ASSIGN_OR_RETURN(*to->Add(), ParseLayout(flag, text));
    names->Add(absl::StrCat(field, "[", to->size() - 1, "]"), flag, text);
    return absl::OkStatus();
  };
  for (const std::string& name : layouts) PLUMBLINE_RETURN_IF_ERROR(add("--layouts", name));
  for (const std::string& sizes : layout) PLUMBLINE_RETURN_IF_ERROR(add("--layout", sizes));
  names->Add(field, layouts.empty() ? "--layout" : "--layouts", "");
  return absl::OkStatus();
}

}  // namespace plumbline::client
