#include "worker/jobs/rule_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/evidence/bundle.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/drift/bundle_verdict.h"
#include "worker/drift/rule_file.h"
#include "worker/drift/rule_report.h"

namespace plumbline::jobs {
namespace {

constexpr size_t kMaxRuleBytes = 64 << 20;
constexpr size_t kMaxBundleFileBytes = 256 << 20;

absl::StatusOr<std::string> ReadInput(const std::string& path, absl::string_view field,
                                      size_t max_bytes) {
  absl::StatusOr<std::string> text = ReadFile(path, max_bytes);
  if (text.ok() || !absl::IsInvalidArgument(text.status())) return text;
  return FieldError(field, text.status().message());
}

absl::StatusOr<v1::Rule> ReadRuleAt(const std::string& path, absl::string_view field) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, ReadInput(path, field, kMaxRuleBytes));
  return drift::ReadRule(text, field);
}

// Files that are not what SHA256SUMS says, or are not there. One that was changed itself says
// nothing about the others.
std::vector<std::string> BadFiles(const v1::VerdictReport& report) {
  std::vector<std::string> bad(report.missing().begin(), report.missing().end());
  for (const v1::VerdictReport::File& file : report.files()) {
    if (file.passed()) continue;
    if (file.path() == kBundleSums) return {kBundleSums};
    bad.push_back(file.path());
  }
  std::sort(bad.begin(), bad.end());
  return bad;
}

std::string WhatIsBad(const std::vector<std::string>& bad) {
  if (bad == std::vector<std::string>{kBundleSums}) {
    return "SHA256SUMS was changed, so nothing can be held against it";
  }
  if (bad == std::vector<std::string>{kBundleSignature}) {
    return "SHA256SUMS.sig is missing, or no signature of SHA256SUMS under the key";
  }
  return absl::StrCat("not as SHA256SUMS says: ", absl::StrJoin(bad, ", "));
}

v1::Verdict VerdictOn(const v1::VerdictReport& report) {
  const std::vector<std::string> bad = BadFiles(report);
  if (bad.empty() && report.agrees()) return report.recomputed();
  v1::Verdict verdict;
  verdict.set_outcome(v1::OUTCOME_FAILED);
  v1::FirstFailure& first = *verdict.mutable_first_failure();
  if (!bad.empty()) {
    first.set_entry(bad.front());
    verdict.set_sentence(absl::StrCat("FAILED: bundle: ", WhatIsBad(bad), "."));
  } else {
    first.set_entry(kBundleVerdict);
    verdict.set_sentence(absl::StrCat("FAILED: bundle: it states \"", report.recorded().sentence(),
                                      "\"; its figures give \"", report.recomputed().sentence(),
                                      "\""));
  }
  return verdict;
}

}  // namespace

absl::StatusOr<JobResult> RunRule(const v1::RuleSpec& spec, const std::string& path,
                                  const std::string& other_path, const std::string& output_folder) {
  JobResult result;
  v1::RuleReport& report = *result.report.mutable_rule();
  v1::Verdict& verdict = *result.report.mutable_verdict();
  verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
  switch (spec.operation_case()) {
    case v1::RuleSpec::kShow: {
      PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_rule(), ReadRuleAt(path, "rule.show"));
      verdict.set_sentence("NOT JUDGED: the rule is valid.");
      return result;
    }
    case v1::RuleSpec::kSeal: {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string text,
                                 ReadInput(path, "rule.seal", kMaxRuleBytes));
      PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_rule(), drift::SealRule(text, "rule.seal"));
      OutputFile file;
      file.path = absl::StrCat(output_folder, "/rule");
      file.role = v1::ARTIFACT_ROLE_RULE;
      file.file_name = "rule.json";
      file.media_type = "application/json";
      PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(file.path, drift::RuleFileText(report.rule())));
      result.files.push_back(std::move(file));
      verdict.set_sentence("NOT JUDGED: the rule was sealed as a manual one.");
      return result;
    }
    case v1::RuleSpec::kCompare: {
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::Rule a, ReadRuleAt(path, "rule.compare.a"));
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::Rule b, ReadRuleAt(other_path, "rule.compare.b"));
      report = drift::CompareRules(a, b);
      verdict.set_sentence("NOT JUDGED: rules are compared, not judged.");
      return result;
    }
    case v1::RuleSpec::OPERATION_NOT_SET:
      break;
  }
  return FieldError("rule", "says nothing to do", "show, seal or compare");
}

absl::StatusOr<JobResult> RunVerdict(const std::map<std::string, std::string>& paths,
                                     const std::string& public_key_pem) {
  BundleFiles files;
  for (const auto& [name, path] : paths) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        files[name],
        ReadInput(path, absl::StrCat("verdict.files[", name, "]"), kMaxBundleFileBytes));
  }
  JobResult result;
  v1::VerdictReport checked;
  PLUMBLINE_RETURN_IF_ERROR(CheckBundleFiles(files, public_key_pem, &checked));
  absl::StatusOr<v1::VerdictReport> report = drift::RecomputeVerdict(files, public_key_pem);
  if (!report.ok()) {
    // What cannot be judged because a file was changed is told by that file.
    if (BadFiles(checked).empty()) return report.status();
    report = std::move(checked);
  }
  *result.report.mutable_verdict() = VerdictOn(*report);
  *result.report.mutable_recomputed_verdict() = *std::move(report);
  return result;
}

}  // namespace plumbline::jobs
