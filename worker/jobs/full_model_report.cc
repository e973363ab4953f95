// What a full-model run makes of its figures: the rule, the judgement, the report.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/drift/full_model_judge.h"
#include "worker/drift/gates.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/drift/rule_freeze.h"
#include "worker/jobs/full_model_ablation.h"
#include "worker/jobs/full_model_run.h"
#include "worker/jobs/identity.h"
#include "worker/jobs/implementation_trace.h"

namespace plumbline::jobs {
namespace {

v1::EntryKind EntryKindOf(h3::TapKind kind) {
  switch (kind) {
    case h3::TapKind::kForward:
      return v1::ENTRY_KIND_FORWARD;
    case h3::TapKind::kGradient:
      return v1::ENTRY_KIND_GRADIENT;
    default:
      return v1::ENTRY_KIND_LEAF;
  }
}

}  // namespace

absl::Status FullModelRun::DescribeRun() {
  *report_.mutable_layout() = setup_.inputs.layout;
  report_.set_rows(static_cast<int32_t>(setup_.rows.packed));
  report_.set_blocks(static_cast<int32_t>(setup_.weights.config().num_layers));
  report_.set_refiner_blocks(static_cast<int32_t>(setup_.weights.config().num_refiner_layers));
  for (float timestep : setup_.inputs.values.layout.timestep) report_.add_timesteps(timestep);
  report_.set_checkpoint_sha256(setup_.binds.checkpoint_sha256());
  report_.set_inputs_sha256(setup_.binds.inputs_sha256());
  report_.set_peak_memory_bytes(device_.HighWaterBytes());
  report_.set_weight_bytes(weights_.loaded_bytes());

  v1::TaskReport& task = result_.report;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string checkpoint, setup_.weights.Identity());
  const auto describe = [&](const FullModelSide& side,
                            v1::NumericalIdentity* identity) -> absl::Status {
    if (side.capture != nullptr) {
      report_.add_captured(side.name);
      return absl::OkStatus();
    }
    PLUMBLINE_ASSIGN_OR_RETURN(*identity, IdentityOf(side.name, checkpoint, setup_.environment));
    return absl::OkStatus();
  };
  v1::NumericalIdentity identity;
  PLUMBLINE_RETURN_IF_ERROR(describe(setup_.golden, &identity));
  if (setup_.golden.capture == nullptr) {
    (*task.mutable_reference_identities())[setup_.golden.name] = std::move(identity);
  }
  for (const FullModelSide& side : setup_.providers) {
    v1::RuleProvider& provider = *report_.add_providers();
    provider.set_name(side.name);
    if (side.capture != nullptr) {
      report_.add_captured(side.name);
      continue;
    }
    PLUMBLINE_RETURN_IF_ERROR(describe(side, provider.mutable_identity()));
    (*task.mutable_reference_identities())[side.name] = provider.identity();
  }
  if (!setup_.candidate.has_value()) return absl::OkStatus();
  task.set_composition(setup_.candidate->name);
  task.set_hybrid(setup_.composition.IsHybrid());
  for (const std::string& name : setup_.extra) report_.add_extra(name);
  if (setup_.candidate->capture != nullptr) {
    report_.add_captured(setup_.candidate->name);
    return absl::OkStatus();
  }
  *report_.mutable_trace() =
      MakeImplementationTrace(setup_.graph, candidate_executor_->trace(), /*backward=*/true);
  return describe(*setup_.candidate, task.mutable_identity());
}

absl::Status FullModelRun::MakeRule() {
  PLUMBLINE_ASSIGN_OR_RETURN(rule_,
                             drift::FreezeRule(drift::ProviderErrorsOf(report_), setup_.binds));
  report_.set_rule_made_here(true);
  PLUMBLINE_RETURN_IF_ERROR(StoreRule());
  v1::RuleFrozenEvent event;
  event.set_sha256(rule_.sha256());
  event.set_k(rule_.k());
  event.set_providers(static_cast<int32_t>(
      std::count_if(rule_.providers().begin(), rule_.providers().end(),
                    [](const v1::RuleProvider& provider) { return provider.kept(); })));
  return context_.on_rule_frozen(event);
}

// The whole rule, of which the report has the head.
absl::Status FullModelRun::StoreRule() {
  OutputFile file;
  file.path = absl::StrCat(setup_.environment.output_folder, "/rule");
  file.role = v1::ARTIFACT_ROLE_RULE;
  file.file_name = "rule.json";
  file.media_type = "application/json";
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(file.path, drift::RuleFileText(rule_)));
  result_.files.push_back(std::move(file));
  return absl::OkStatus();
}

// Which of this run's providers the rule was made of.
void FullModelRun::ListProviders() {
  for (v1::RuleProvider& provider : *report_.mutable_providers()) {
    const auto found = std::find_if(
        rule_.providers().begin(), rule_.providers().end(),
        [&](const v1::RuleProvider& other) { return other.name() == provider.name(); });
    if (found == rule_.providers().end()) {
      provider.set_dropped_because("not in the rule");
    } else {
      provider.set_kept(found->kept());
      provider.set_dropped_because(found->dropped_because());
    }
  }
}

void FullModelRun::SendCandidate(size_t index) {
  if (!candidate_.error[index].has_value()) return;
  v1::NodeEvent event;
  event.set_layout(setup_.inputs.label);
  event.set_entry(inventory_[index].name);
  event.set_kind(EntryKindOf(inventory_[index].kind));
  event.set_composition(setup_.candidate->name);
  event.set_feed(v1::FEED_CHAINED);
  *event.mutable_comparison() = *candidate_.error[index];
  for (const v1::GateResult& gate : report_.tensors(static_cast<int>(index)).gates()) {
    if (!gate.passed() && !gate.not_measured()) event.add_failed_gates(gate.gate());
  }
  context_.on_node(event);
}

absl::StatusOr<v1::Verdict> FullModelRun::Judge() {
  for (size_t i = 0; i < inventory_.size(); ++i) {
    v1::FullModelTensor& tensor = *report_.mutable_tensors(static_cast<int>(i));
    if (candidate_.error[i].has_value()) *tensor.mutable_candidate_error() = *candidate_.error[i];
    if (candidate_.drift[i].has_value()) *tensor.mutable_candidate_drift() = *candidate_.drift[i];
  }
  v1::Verdict verdict;
  if (setup_.CandidateIsReference()) {
    verdict = drift::NotJudged(setup_.inputs.label, setup_.candidate->name);
  } else {
    std::vector<std::string> qualifications;
    if (setup_.composition.IsHybrid()) {
      qualifications.push_back("hybrid composition: diagnostic only");
    }
    if (setup_.candidate->composition.has_value()) {
      for (const std::string& empty : setup_.candidate->composition->empty_overrides) {
        qualifications.push_back(absl::StrCat(empty, " names no node of this model"));
      }
    }
    if (setup_.fault.has_value()) {
      qualifications.push_back(absl::StrCat("fault ", setup_.fault->info->name, " injected"));
    }
    if (!setup_.inert_fault.empty()) qualifications.push_back(setup_.inert_fault);
    const std::string other_device = drift::OtherDeviceQualification(rule_, setup_.binds);
    if (!other_device.empty()) qualifications.push_back(other_device);
    PLUMBLINE_ASSIGN_OR_RETURN(verdict, drift::JudgeFullModel(rule_, setup_.inputs.label,
                                                              std::move(qualifications), &report_));
  }
  for (size_t i = 0; i < inventory_.size(); ++i) SendCandidate(i);
  return verdict;
}

absl::Status FullModelRun::FillAblation() {
  for (size_t i = 0; i < setup_.ablation.size(); ++i) {
    const AblatedSide& ablated = setup_.ablation[i];
    if (ablated.empty) {
      v1::AblationRow& row = *report_.add_ablation();
      row.set_group(ablated.group);
      row.set_composition(ablated.side.name);
      row.set_empty(true);
      continue;
    }
    std::vector<v1::TensorComparison> errors;
    for (auto& error : ablated_[i].error) errors.push_back(*std::move(error));
    PLUMBLINE_ASSIGN_OR_RETURN(
        v1::AblationRow row,
        MakeAblationRow(ablated, rule_, report_, errors,
                        MakeImplementationTrace(setup_.graph, ablated_executors_[i]->trace(),
                                                /*backward=*/true)));
    if (ablated.group == "all") {
      std::sort(differs_from_provider_.begin(), differs_from_provider_.end());
      row.mutable_differs_from_provider()->Add(differs_from_provider_.begin(),
                                               differs_from_provider_.end());
    }
    *report_.add_ablation() = std::move(row);
  }
  return absl::OkStatus();
}

absl::StatusOr<JobResult> FullModelRun::Finish() {
  PLUMBLINE_RETURN_IF_ERROR(DescribeRun());
  if (setup_.rule.has_value()) {
    rule_ = *setup_.rule;
    PLUMBLINE_RETURN_IF_ERROR(StoreRule());
  } else if (setup_.MakesRule()) {
    PLUMBLINE_RETURN_IF_ERROR(MakeRule());
  }
  ListProviders();
  v1::TaskReport& task = result_.report;
  if (setup_.candidate.has_value()) {
    PLUMBLINE_ASSIGN_OR_RETURN(*task.mutable_verdict(), Judge());
    PLUMBLINE_RETURN_IF_ERROR(FillAblation());
  } else {
    *task.mutable_verdict() = drift::RuleFrozenVerdict(rule_, setup_.inputs.label);
    *report_.mutable_rule() = rule_;
    report_.mutable_rule()->clear_tensors();
    for (v1::FullModelTensor& tensor : *report_.mutable_tensors()) {
      for (const v1::Rule::TensorBound& bound : rule_.tensors()) {
        if (bound.name() == tensor.name()) tensor.set_bound(bound.bound());
      }
    }
  }
  if (setup_.fault.has_value()) {
    *task.mutable_control() = drift::JudgeControl(*setup_.fault->info, task.mutable_verdict());
  }
  // The last thing, so that a job that was cancelled leaves no file behind.
  for (const auto& output : outputs_) {
    PLUMBLINE_RETURN_IF_ERROR(output->tensors.Finish());
    result_.files.push_back(output->file);
  }
  *task.mutable_full_model() = std::move(report_);
  return std::move(result_);
}

}  // namespace plumbline::jobs
