#include "worker/drift/bundle_verdict.h"

#include <google/protobuf/util/field_comparator.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/evidence/combine_verdicts.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/faults.h"
#include "worker/drift/full_model_judge.h"
#include "worker/drift/gates.h"
#include "worker/drift/generation_verdict.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/drift/rule_freeze.h"
#include "worker/drift/trace_check.h"

namespace plumbline::drift {
namespace {

using google::protobuf::util::MessageDifferencer;

// The layout's label, which a verdict's sentence has between its outcome and what was found:
// "FAILED: tiny: ...".
std::string LabelOf(const v1::Verdict& recorded) {
  const absl::string_view sentence = recorded.sentence();
  const size_t begin = sentence.find(": ");
  if (begin == absl::string_view::npos) return "";
  const size_t end = sentence.find(": ", begin + 2);
  return std::string(
      sentence.substr(begin + 2, end == absl::string_view::npos ? 0 : end - begin - 2));
}

// What the bundle says of the run's limits, without what judging finds out by itself.
std::vector<std::string> GivenQualifications(const v1::Verdict& recorded) {
  std::vector<std::string> given;
  for (const std::string& qualification : recorded.qualifications()) {
    if (qualification == "manual rule" || absl::EndsWith(qualification, " not measured")) continue;
    given.push_back(qualification);
  }
  return given;
}

bool IsCaptured(const google::protobuf::RepeatedPtrField<std::string>& captured) {
  return std::find(captured.begin(), captured.end(), "candidate") != captured.end();
}

// A gradient that sums over packed rows has no batch gate.
bool SumsRows(const v1::EntryReport& entry) {
  if (entry.kind() == v1::ENTRY_KIND_LEAF) return entry.name() != "leaf.input";
  return entry.name() == "adaln_projection.grad";
}

// That a node ran at all is a measurement, which only its gate records.
bool Executed(const v1::EntryReport& entry) {
  const bool ran = std::any_of(
      entry.gates().begin(), entry.gates().end(),
      [](const v1::GateResult& gate) { return gate.gate() == "executed" && gate.value() == 0; });
  return ran && RanAsRequested(entry.implementation().requested(), entry.implementation().actual());
}

v1::Verdict JudgeBlockReplay(const v1::TaskReport& task, v1::BlockReplayReport* replay) {
  const std::string label = LabelOf(task.verdict());
  const CandidateKind kind =
      IsCaptured(replay->captured()) ? CandidateKind::kCaptured : CandidateKind::kExecuted;
  // A reference is held to no gate.
  const bool judged = std::any_of(replay->entries().begin(), replay->entries().end(),
                                  [](const auto& entry) { return entry.gates_size() > 0; });
  std::vector<v1::EntryReport> entries(replay->entries().begin(), replay->entries().end());
  for (v1::EntryReport& report : entries) {
    BlockEntry entry;
    entry.name = report.name();
    entry.kind = report.kind();
    entry.role = report.node();
    entry.sums_rows = SumsRows(report);
    if (judged) JudgeEntry(entry, kind, Executed(report), &report);
  }
  if (judged) *replay->mutable_firsts() = FindFirsts(entries, kind, replay->backward());
  *replay->mutable_entries() = {entries.begin(), entries.end()};
  return judged ? JudgeReplay(entries, label, GivenQualifications(task.verdict()))
                : NotJudged(label, task.composition());
}

// Also where figures are not finite.
bool Equal(const v1::Report& a, const v1::Report& b) {
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  return differencer.Compare(a, b);
}

using RulesByDigest = std::map<std::string, v1::Rule>;

absl::StatusOr<RulesByDigest> ReadRules(const BundleFiles& files) {
  RulesByDigest rules;
  for (const auto& [path, contents] : files) {
    if (path != "rule.json" && !absl::StartsWith(path, "rule-")) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(v1::Rule rule, ReadRule(contents, path));
    std::string digest = rule.sha256();
    rules.emplace(std::move(digest), std::move(rule));
  }
  return rules;
}

// A rule that this job made is what its providers' figures give.
absl::Status CheckRuleMadeHere(const v1::FullModelReport& report, const v1::Rule& rule) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Rule again,
                             FreezeRule(ProviderErrorsOf(report), rule.binds()));
  if (again.sha256() == rule.sha256()) return absl::OkStatus();
  return FieldError(kBundleReport,
                    absl::StrCat("the providers' errors give the rule ", Quoted(again.sha256()),
                                 ", the job was judged by ", Quoted(rule.sha256())));
}

v1::Verdict JudgeGenerationAgain(const v1::TaskReport& task) {
  const v1::GenerationReport& generation = task.generation();
  // That a node did not run, or a saved step was another one's, is a measurement, which only the
  // verdict records.
  std::optional<v1::FirstFailure> failure;
  if (task.verdict().has_first_failure() &&
      task.verdict().first_failure().gate() != kSensitivityGate) {
    failure = task.verdict().first_failure();
  }
  for (const v1::SensitivityCheck& check : generation.sensitivity()) {
    if (failure.has_value() || (check.video_change() > 0 && check.audio_change() > 0)) continue;
    failure.emplace();
    failure->set_entry(check.input());
    failure->set_gate(kSensitivityGate);
    failure->set_where(absl::StrCat("seed ", generation.seed()));
  }
  const auto& recorded = task.verdict().qualifications();
  return GenerationVerdict(generation.seed(), generation.steps_size(), failure,
                           {recorded.begin(), recorded.end()});
}

// Of the kinds whose verdict says no more than whether something is amiss: whether something is.
// None for a kind that is not judged so.
std::optional<bool> FailedByItsFigures(const v1::TaskReport& task) {
  if (task.has_checkpoint()) return !task.checkpoint().findings().empty();
  if (task.has_selftest()) {
    const auto& rows = task.selftest().rows();
    return std::any_of(rows.begin(), rows.end(), [](const v1::SelftestReport::Row& row) {
      return !row.passed() && row.skipped().empty();
    });
  }
  if (!task.has_media() && !task.has_generation_comparison()) return std::nullopt;
  if (task.has_generation_comparison() && !task.generation_comparison().noise_equal()) return true;
  const auto& gates =
      task.has_media() ? task.media().gates() : task.generation_comparison().quality().gates();
  return std::any_of(gates.begin(), gates.end(), [](const v1::GateResult& gate) {
    const bool is_least = gate.gate() == "psnr" || gate.gate() == "ssim";
    const bool within = is_least ? gate.value() >= gate.bound() : gate.value() <= gate.bound();
    return !gate.not_measured() && !within;  // A NaN is within nothing.
  });
}

// What the verdict states, if it states that; else what the figures give.
v1::Verdict Outweigh(bool failed, const v1::Verdict& stated) {
  if (failed == (stated.outcome() == v1::OUTCOME_FAILED)) return stated;
  v1::Verdict verdict;
  verdict.set_outcome(failed ? v1::OUTCOME_FAILED : v1::OUTCOME_PASSED);
  verdict.set_sentence(failed ? "FAILED: by its figures." : "PASSED: nothing in it fails.");
  return verdict;
}

// Whether a fault that was put in was found where it must be.
void JudgeControlAgain(v1::TaskReport* task) {
  if (!task->has_control()) return;
  const absl::string_view job = task->has_block_replay() ? "block-replay"
                                : task->has_full_model() ? "full-model"
                                                         : "generation";
  const FaultInfo* const fault = FindFault(job, task->control().fault());
  if (fault == nullptr) return;
  v1::Verdict verdict = task->verdict();
  *task->mutable_control() = JudgeControl(*fault, &verdict);
  *task->mutable_verdict() = std::move(verdict);
}

absl::StatusOr<v1::Verdict> JudgeFullModelAgain(const v1::TaskReport& task,
                                                const RulesByDigest& rules, bool froze_rule,
                                                v1::FullModelReport* report) {
  // A reference is held to no gate.
  if (!report->has_rule()) return NotJudged(LabelOf(task.verdict()), task.composition());
  const auto rule = rules.find(report->rule().sha256());
  if (rule == rules.end()) {
    return FieldError("rule.json",
                      absl::StrCat("no rule of the bundle is ", Quoted(report->rule().sha256()),
                                   ", by which ", Quoted(task.title()), " was judged"));
  }
  if (report->rule_made_here() || froze_rule) {
    PLUMBLINE_RETURN_IF_ERROR(CheckRuleMadeHere(*report, rule->second));
  }
  const std::string label = LabelOf(task.verdict());
  if (froze_rule) return RuleFrozenVerdict(rule->second, label);
  v1::Rule::Binds binds = rule->second.binds();
  binds.set_checkpoint_sha256(report->checkpoint_sha256());
  binds.set_inputs_sha256(report->inputs_sha256());
  std::vector<std::string> names;
  for (const v1::FullModelTensor& tensor : report->tensors()) names.push_back(tensor.name());
  PLUMBLINE_RETURN_IF_ERROR(CheckBinds(rule->second, binds, names, /*allow_other_device=*/false));
  return JudgeFullModel(rule->second, label, GivenQualifications(task.verdict()), report);
}

}  // namespace

absl::StatusOr<v1::VerdictReport> RecomputeVerdict(const BundleFiles& files,
                                                   const std::string& public_key_pem) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Report recorded, ReportOfBundle(files));
  PLUMBLINE_ASSIGN_OR_RETURN(const RulesByDigest rules, ReadRules(files));
  v1::Report again = recorded;
  std::vector<std::pair<std::string, v1::Verdict>> verdicts;
  for (v1::TaskReport& task : *again.mutable_tasks()) {
    if (task.has_block_replay()) {
      *task.mutable_verdict() = JudgeBlockReplay(task, task.mutable_block_replay());
    } else if (task.has_full_model()) {
      PLUMBLINE_ASSIGN_OR_RETURN(
          *task.mutable_verdict(),
          JudgeFullModelAgain(task, rules, recorded.spec().full_model().freeze_rule(),
                              task.mutable_full_model()));
    } else if (task.has_generation()) {
      *task.mutable_verdict() = JudgeGenerationAgain(task);
    } else if (const std::optional<bool> failed = FailedByItsFigures(task); failed.has_value()) {
      *task.mutable_verdict() = Outweigh(*failed, task.verdict());
    } else {
      return FieldError(kBundleReport,
                        absl::StrCat("is of ", v1::JobKind_Name(recorded.kind()),
                                     ", whose verdict no figures give"),
                        "a job that is judged");
    }
    JudgeControlAgain(&task);
    verdicts.emplace_back(task.title(), task.verdict());
  }
  *again.mutable_verdict() = CombineVerdicts(verdicts);

  v1::VerdictReport report;
  *report.mutable_recomputed() = again.verdict();
  *report.mutable_recorded() = recorded.verdict();
  const auto verdict_file = files.find(kBundleVerdict);
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string verdict_text, VerdictJson(again));
  report.set_agrees(Equal(again, recorded) && verdict_file != files.end() &&
                    verdict_file->second == verdict_text);
  PLUMBLINE_RETURN_IF_ERROR(CheckBundleFiles(files, public_key_pem, &report));
  return report;
}

}  // namespace plumbline::drift
