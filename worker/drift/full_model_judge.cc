#include "worker/drift/full_model_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/drift/rule.h"
#include "worker/drift/trace_check.h"

namespace plumbline::drift {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A NaN is beyond every bound.
double Ratio(double value, double bound) {
  if (std::isnan(value)) return kInfinity;
  if (bound == 0) return value == 0 ? 0 : kInfinity;
  return value / bound;
}

// On either side of the candidate's comparisons, the worst of them.
int64_t NonfiniteCount(const v1::FullModelTensor& tensor) {
  int64_t count = 0;
  for (const v1::TensorComparison* comparison :
       {&tensor.candidate_error(), &tensor.candidate_drift()}) {
    const v1::TensorComparison::Nonfinite& found = comparison->nonfinite();
    count = std::max(
        count, found.nan() + found.infinity() + found.reference_nan() + found.reference_infinity());
  }
  return count;
}

const v1::GateResult* FirstFailedGate(const v1::FullModelTensor& tensor) {
  for (const v1::GateResult& gate : tensor.gates()) {
    if (!gate.passed() && !gate.not_measured()) return &gate;
  }
  return nullptr;
}

// Index of `provider/default` among the report's providers, or -1.
int DefaultProvider(const v1::FullModelReport& report) {
  for (int i = 0; i < report.providers_size(); ++i) {
    const std::string& name = report.providers(i).name();
    if (name == "provider/default" || name == "default") return i;
  }
  return -1;
}

class Judge {
 public:
  Judge(const v1::Rule& rule, absl::string_view where, std::vector<std::string> qualifications,
        v1::FullModelReport* report)
      : rule_(rule),
        where_(where),
        qualifications_(std::move(qualifications)),
        report_(*report),
        captured_(std::find(report->captured().begin(), report->captured().end(), "candidate") !=
                  report->captured().end()) {
    for (const v1::Rule::TensorBound& tensor : rule.tensors()) {
      bounds_.emplace(tensor.name(), tensor.bound());
    }
  }

  absl::StatusOr<v1::Verdict> Run() {
    PLUMBLINE_RETURN_IF_ERROR(CheckNames());
    Clear();
    *report_.mutable_rule() = rule_;
    report_.mutable_rule()->clear_tensors();
    if (!captured_) FindNodesNotRun();
    for (v1::FullModelTensor& tensor : *report_.mutable_tensors()) JudgeTensor(&tensor);
    for (const std::string& name : report_.extra()) report_.add_failing(name);
    FindFirstDrift();
    JudgeBySingleProvider();
    return MakeVerdict();
  }

 private:
  absl::Status CheckNames() const {
    for (const v1::FullModelTensor& tensor : report_.tensors()) {
      if (bounds_.contains(tensor.name())) continue;
      return FieldError("rule.tensors", absl::StrCat("lacks ", Quoted(tensor.name())));
    }
    return absl::OkStatus();
  }

  void Clear() {
    report_.clear_missing();
    report_.clear_failing();
    report_.clear_firsts();
    report_.clear_worst_ratio();
    report_.clear_worst_tensor();
    report_.clear_single_provider_verdict();
  }

  // Every failure of the trace stands at one tensor at least: a node that none is known for at the
  // first, and a trace that says nothing at all of them.
  void FindNodesNotRun() {
    if (report_.trace().groups().empty()) {
      for (const v1::FullModelTensor& tensor : report_.tensors()) not_run_[tensor.name()] = 1;
      return;
    }
    std::map<std::string, int> counts = NodesNotRun(report_.trace(), report_.blocks());
    for (const v1::FullModelTensor& tensor : report_.tensors()) {
      const auto found = counts.find(tensor.name());
      if (found == counts.end()) continue;
      not_run_[tensor.name()] = found->second;
      counts.erase(found);
    }
    if (counts.empty() || report_.tensors().empty()) return;
    for (const auto& [node, count] : counts) not_run_[report_.tensors(0).name()] += count;
  }

  v1::GateResult& Add(absl::string_view gate, double value, double bound) {
    v1::GateResult& result = *tensor_->add_gates();
    result.set_gate(std::string(gate));
    result.set_value(value);
    result.set_bound(bound);
    result.set_passed(value <= bound);  // a NaN is not
    return result;
  }

  void AddExecuted() {
    if (captured_) {
      v1::GateResult& result = *tensor_->add_gates();
      result.set_gate("executed");
      result.set_not_measured(true);
      return;
    }
    const auto found = not_run_.find(tensor_->name());
    Add("executed", found == not_run_.end() ? 0 : found->second, 0);
  }

  void JudgeTensor(v1::FullModelTensor* tensor) {
    tensor_ = tensor;
    tensor->clear_gates();
    tensor->clear_bound_ratio();
    tensor->set_bound(bounds_.at(tensor->name()));
    const bool gradient = IsGradientTensor(tensor->name());
    if (!gradient) AddExecuted();
    const v1::TensorComparison& error = tensor->candidate_error();
    const bool missing = !tensor->has_candidate_error();
    if (missing) report_.add_missing(tensor->name());
    const bool comparable = !missing && error.incomparable().empty();
    if (comparable) Add("finite", static_cast<double>(NonfiniteCount(*tensor)), 0);
    Add("shape", comparable ? 0 : 1, 0);
    if (comparable) {
      if (gradient) Add("zero", error.norm() == 0 && error.reference_norm() != 0 ? 1 : 0, 0);
      Add("ensemble", error.relative_l2(), tensor->bound());
      tensor->set_bound_ratio(Ratio(error.relative_l2(), tensor->bound()));
      NoteRatio(*tensor);
    }
    tensor->set_passed(FirstFailedGate(*tensor) == nullptr);
    if (!tensor->passed()) report_.add_failing(tensor->name());
  }

  void NoteRatio(const v1::FullModelTensor& tensor) {
    if (!report_.worst_tensor().empty() && tensor.bound_ratio() <= report_.worst_ratio()) return;
    report_.set_worst_ratio(tensor.bound_ratio());
    report_.set_worst_tensor(tensor.name());
  }

  void FindFirstDrift() {
    bool measured = false;
    for (const v1::FullModelTensor& tensor : report_.tensors()) {
      if (!tensor.has_candidate_drift()) continue;
      measured = true;
      if (tensor.candidate_drift().bitwise_equal()) continue;
      report_.mutable_firsts()->set_first_drift(tensor.name());
      return;
    }
    if (measured) report_.mutable_firsts()->set_first_drift("");
  }

  void JudgeBySingleProvider() {
    v1::Verdict& verdict = *report_.mutable_single_provider_verdict();
    const int provider = DefaultProvider(report_);
    int failing = 0;
    std::string first;
    for (v1::FullModelTensor& tensor : *report_.mutable_tensors()) {
      tensor.clear_single_provider_bound();
      tensor.clear_single_provider_max_abs_bound();
      tensor.clear_single_provider_passed();
      if (provider < 0 || provider >= tensor.provider_errors_size()) continue;
      const v1::TensorComparison& reference = tensor.provider_errors(provider);
      const v1::TensorComparison& error = tensor.candidate_error();
      const double floor = FloorOf(rule_.floors(), tensor.name());
      tensor.set_single_provider_bound(
          EnsembleBound(kSingleProviderFactor, reference.relative_l2(), floor));
      tensor.set_single_provider_max_abs_bound(
          EnsembleBound(kSingleProviderFactor, reference.max_abs(), floor));
      tensor.set_single_provider_passed(tensor.has_candidate_error() &&
                                        error.incomparable().empty() &&
                                        error.relative_l2() <= tensor.single_provider_bound() &&
                                        error.max_abs() <= tensor.single_provider_max_abs_bound());
      if (tensor.single_provider_passed()) continue;
      if (failing++ == 0) first = tensor.name();
    }
    if (provider < 0) {
      verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
      verdict.set_sentence(absl::StrCat("NOT JUDGED: ", where_, ": provider/default did not run."));
    } else if (failing == 0) {
      verdict.set_outcome(v1::OUTCOME_PASSED);
      verdict.set_sentence(absl::StrCat("PASSED: ", where_, ": all ", report_.tensors_size(),
                                        " tensors pass the single-provider rule."));
    } else {
      verdict.set_outcome(v1::OUTCOME_FAILED);
      verdict.set_sentence(
          absl::StrCat("FAILED: ", where_, ": ", failing, " of ", report_.tensors_size(),
                       " tensors fail the single-provider rule, the first ", first, "."));
    }
  }

  // The first entry that fails, with its gate; tensors that the inventory lacks come last.
  v1::FirstFailure FirstFailure(std::string* figures) const {
    v1::FirstFailure first;
    first.set_where(std::string(where_));
    for (const v1::FullModelTensor& tensor : report_.tensors()) {
      if (tensor.passed()) continue;
      const v1::GateResult& gate = *FirstFailedGate(tensor);
      first.set_entry(tensor.name());
      first.set_gate(gate.gate());
      if (gate.gate() == "ensemble") {
        *figures = absl::StrFormat(": %.3g where %.3g is allowed", gate.value(), gate.bound());
      }
      return first;
    }
    first.set_entry(report_.extra(0));
    first.set_gate("shape");
    *figures = ": not in the inventory";
    return first;
  }

  v1::Verdict MakeVerdict() {
    v1::Verdict verdict;
    if (rule_.origin() == v1::RULE_ORIGIN_MANUAL) qualifications_.push_back("manual rule");
    if (captured_) qualifications_.push_back("executed not measured");
    const std::string limits = qualifications_.empty()
                                   ? ""
                                   : absl::StrCat(" (", absl::StrJoin(qualifications_, "; "), ")");
    const std::string worst = report_.worst_tensor().empty()
                                  ? ""
                                  : absl::StrFormat("; worst ratio %.3g at %s",
                                                    report_.worst_ratio(), report_.worst_tensor());
    if (!report_.failing().empty()) {
      std::string figures;
      verdict.set_outcome(v1::OUTCOME_FAILED);
      *verdict.mutable_first_failure() = FirstFailure(&figures);
      verdict.set_sentence(absl::StrCat(
          "FAILED: ", where_, ": first failure ", verdict.first_failure().entry(), " (",
          verdict.first_failure().gate(), figures, "); ", report_.failing_size(), " of ",
          report_.tensors_size() + report_.extra_size(), " tensors fail", worst, limits, "."));
    } else {
      const absl::string_view outcome = captured_ ? "PARTIAL" : "PASSED";
      verdict.set_outcome(captured_ ? v1::OUTCOME_PARTIAL : v1::OUTCOME_PASSED);
      verdict.set_sentence(absl::StrCat(outcome, ": ", where_, ": all ", report_.tensors_size(),
                                        " tensors pass", worst, limits, "."));
    }
    for (std::string& qualification : qualifications_) {
      verdict.add_qualifications(std::move(qualification));
    }
    return verdict;
  }

  const v1::Rule& rule_;
  const absl::string_view where_;
  std::vector<std::string> qualifications_;
  v1::FullModelReport& report_;
  const bool captured_;
  absl::flat_hash_map<std::string, double> bounds_;
  std::map<std::string, int> not_run_;     // nodes, by tensor
  v1::FullModelTensor* tensor_ = nullptr;  // the one being judged
};

}  // namespace

absl::StatusOr<v1::Verdict> JudgeFullModel(const v1::Rule& rule, absl::string_view where,
                                           std::vector<std::string> qualifications,
                                           v1::FullModelReport* report) {
  return Judge(rule, where, std::move(qualifications), report).Run();
}

v1::Verdict RuleFrozenVerdict(const v1::Rule& rule, absl::string_view where) {
  const int64_t kept =
      std::count_if(rule.providers().begin(), rule.providers().end(),
                    [](const v1::RuleProvider& provider) { return provider.kept(); });
  v1::Verdict verdict;
  verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
  verdict.set_sentence(absl::StrFormat(
      "NOT JUDGED: %s: a rule was frozen from %d providers, k %.1f over %d tensors.", where, kept,
      rule.k(), rule.tensors_size()));
  return verdict;
}

}  // namespace plumbline::drift
