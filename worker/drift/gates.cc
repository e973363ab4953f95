#include "worker/drift/gates.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace plumbline::drift {
namespace {

// Isolated, the candidate must have the provider's bytes here: elementwise arithmetic and norms,
// whose order of rounding and of summation is the provider's.
constexpr absl::string_view kBitwiseRoles[] = {"norm1",  "norm2",  "q_norm",        "k_norm",
                                               "rope_q", "rope_k", "residual_attn", "residual_mlp"};
// Isolated, the candidate must be this near the provider here: products may sum in another order.
constexpr absl::string_view kNearRoles[] = {"adaln_projection", "q_proj", "k_proj",
                                            "v_proj",           "o_proj", "ffn_gate_up",
                                            "ffn_down",         "swiglu"};
constexpr double kIsolatedRelativeL2 = 1e-3;

// Error against the golden, in the provider's error and a floor.
struct ErrorBound {
  double factor;
  double floor;

  double Of(const v1::TensorComparison& provider_error) const {
    return factor * provider_error.relative_l2() + floor;
  }
};
constexpr ErrorBound kNodeError = {1.25, 1e-3};
constexpr ErrorBound kGradientError = {1.5, 5e-3};
// The second chance of a bfloat16 leaf: units u beyond the provider's largest error.
constexpr double kLeafUnits = 6;

bool Contains(absl::Span<const absl::string_view> roles, absl::string_view role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

int64_t NonfiniteCount(const v1::TensorComparison& comparison) {
  const v1::TensorComparison::Nonfinite& found = comparison.nonfinite();
  return found.nan() + found.infinity() + found.reference_nan() + found.reference_infinity();
}

class Judge {
 public:
  Judge(const BlockEntry& entry, CandidateKind kind, v1::EntryReport* report)
      : entry_(entry), captured_(kind == CandidateKind::kCaptured), report_(*report) {}

  void Run(bool executed) {
    report_.clear_gates();
    if (!captured_) Add("executed", executed ? 0 : 1, 0);
    Equality("repeat", report_.repeat());
    if (!entry_.sums_rows) Equality("batch", report_.batch());
    Add("finite", static_cast<double>(Nonfinite()), 0);
    if (entry_.kind == v1::ENTRY_KIND_FORWARD) {
      Forward();
    } else {
      Add("zero", IsZeroGradient() ? 1 : 0, 0);
      if (entry_.kind == v1::ENTRY_KIND_GRADIENT) {
        Errors(kGradientError);
      } else {
        Leaf();
      }
    }
    report_.set_passed(std::all_of(
        report_.gates().begin(), report_.gates().end(),
        [](const v1::GateResult& gate) { return gate.passed() || gate.not_measured(); }));
  }

 private:
  v1::GateResult& Add(absl::string_view gate, double value, double bound) {
    v1::GateResult& result = *report_.add_gates();
    result.set_gate(std::string(gate));
    result.set_value(value);
    result.set_bound(bound);
    result.set_passed(value <= bound);  // a NaN is not
    return result;
  }

  void AddNotMeasured(absl::string_view gate, double bound) {
    v1::GateResult& result = *report_.add_gates();
    result.set_gate(std::string(gate));
    result.set_bound(bound);
    result.set_not_measured(true);
  }

  void AddIsolated(absl::string_view gate, double value, double bound) {
    if (captured_) {
      AddNotMeasured(gate, bound);
    } else {
      Add(gate, value, bound);
    }
  }

  void Equality(absl::string_view gate, const v1::EqualityCheck& check) {
    switch (check.result()) {
      case v1::EQUALITY_EQUAL:
        Add(gate, 0, 0);
        break;
      case v1::EQUALITY_DIFFERENT:
        Add(gate, 1, 0);
        break;
      default:
        AddNotMeasured(gate, 0);
    }
  }

  void Forward() {
    if (Contains(kBitwiseRoles, entry_.role)) {
      AddIsolated("isolated_bitwise", report_.isolated().bitwise_equal() ? 0 : 1, 0);
    }
    if (Contains(kNearRoles, entry_.role)) {
      AddIsolated("isolated_relative_l2", report_.isolated().relative_l2(), kIsolatedRelativeL2);
    }
    Errors(kNodeError);
  }

  void Errors(const ErrorBound& bound) {
    const double error = bound.Of(report_.provider_error());
    AddIsolated("isolated_error", report_.isolated_error().relative_l2(), error);
    Add("chained_error", report_.chained_error().relative_l2(), error);
  }

  void Leaf() {
    const v1::TensorComparison& error = report_.chained_error();
    v1::GateResult& gate =
        Add("leaf_error", error.relative_l2(), kGradientError.Of(report_.provider_error()));
    if (gate.passed() || error.dtype() != "BF16" || error.max_u() <= 0) return;
    const double unit = error.max_abs() / error.max_u();
    if (error.max_abs() <= report_.provider_error().max_abs() + kLeafUnits * unit) {
      gate.set_passed(true);
      gate.set_passed_by("max_abs <= provider + 6u");
    }
  }

  // On either side of any comparison, the worst of them.
  int64_t Nonfinite() const {
    int64_t count = 0;
    for (const v1::TensorComparison* comparison :
         {&report_.chained(), &report_.chained_error(), &report_.isolated(),
          &report_.isolated_error(), &report_.provider_error()}) {
      count = std::max(count, NonfiniteCount(*comparison));
    }
    return count;
  }

  bool IsZeroGradient() const {
    if (report_.chained_error().reference_norm() == 0) return false;
    return report_.chained_error().norm() == 0 ||
           (!captured_ && report_.isolated_error().norm() == 0);
  }

  const BlockEntry& entry_;
  const bool captured_;
  v1::EntryReport& report_;
};

const v1::GateResult* FirstFailedGate(const v1::EntryReport& entry) {
  for (const v1::GateResult& gate : entry.gates()) {
    if (!gate.passed() && !gate.not_measured()) return &gate;
  }
  return nullptr;
}

// The name of the first entry that `differs`, or "".
template <typename Differs>
std::string First(const std::vector<v1::EntryReport>& entries, Differs differs) {
  for (const v1::EntryReport& entry : entries) {
    if (differs(entry)) return entry.name();
  }
  return "";
}

std::vector<std::string> GatesNotMeasured(const std::vector<v1::EntryReport>& entries) {
  std::vector<std::string> names;
  for (const v1::EntryReport& entry : entries) {
    for (const v1::GateResult& gate : entry.gates()) {
      // All gates on an isolated execution are one thing that was not measured.
      const absl::string_view full = gate.gate();
      const std::string name(full.substr(0, full.find('_')));
      if (gate.not_measured() && std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

}  // namespace

void JudgeEntry(const BlockEntry& entry, CandidateKind kind, bool executed,
                v1::EntryReport* report) {
  Judge(entry, kind, report).Run(executed);
}

v1::Firsts FindFirsts(const std::vector<v1::EntryReport>& entries, CandidateKind kind,
                      bool backward) {
  v1::Firsts firsts;
  firsts.set_first_drift(
      First(entries, [](const auto& entry) { return !entry.chained().bitwise_equal(); }));
  if (kind == CandidateKind::kCaptured) return firsts;
  firsts.set_first_isolated_drift(
      First(entries, [](const auto& entry) { return !entry.isolated().bitwise_equal(); }));
  const auto differs = [&](bool forward, const auto& check) {
    return First(entries, [&](const v1::EntryReport& entry) {
      return (entry.kind() == v1::ENTRY_KIND_FORWARD) == forward &&
             (entry.*check)().result() == v1::EQUALITY_DIFFERENT;
    });
  };
  firsts.set_first_repeat_drift(differs(true, &v1::EntryReport::repeat));
  firsts.set_first_batch_drift(differs(true, &v1::EntryReport::batch));
  if (!backward) return firsts;
  firsts.set_first_grad_repeat_drift(differs(false, &v1::EntryReport::repeat));
  firsts.set_first_grad_batch_drift(differs(false, &v1::EntryReport::batch));
  return firsts;
}

v1::Verdict JudgeReplay(const std::vector<v1::EntryReport>& entries, absl::string_view where,
                        std::vector<std::string> qualifications) {
  v1::Verdict verdict;
  const std::vector<std::string> not_measured = GatesNotMeasured(entries);
  for (const std::string& gate : not_measured) {
    qualifications.push_back(absl::StrCat(gate, " not measured"));
  }
  const std::string limits =
      qualifications.empty() ? "" : absl::StrCat(" (", absl::StrJoin(qualifications, "; "), ")");
  const auto failed = std::find_if(entries.begin(), entries.end(),
                                   [](const v1::EntryReport& entry) { return !entry.passed(); });
  if (failed != entries.end()) {
    const v1::GateResult& gate = *FirstFailedGate(*failed);
    const int64_t failures = std::count_if(
        failed, entries.end(), [](const v1::EntryReport& entry) { return !entry.passed(); });
    verdict.set_outcome(v1::OUTCOME_FAILED);
    v1::FirstFailure& first = *verdict.mutable_first_failure();
    first.set_entry(failed->name());
    first.set_gate(gate.gate());
    first.set_where(std::string(where));
    const std::string figures = gate.bound() == 0 ? ""
                                                  : absl::StrFormat(": %.3g where %.3g is allowed",
                                                                    gate.value(), gate.bound());
    verdict.set_sentence(absl::StrCat("FAILED: ", where, ": first failure ", first.entry(), " (",
                                      gate.gate(), figures, "); ", failures, " of ", entries.size(),
                                      " tensors fail", limits, "."));
  } else if (!not_measured.empty()) {
    verdict.set_outcome(v1::OUTCOME_PARTIAL);
    verdict.set_sentence(absl::StrCat("PARTIAL: ", where, ": all ", entries.size(),
                                      " tensors pass what could be measured", limits, "."));
  } else {
    verdict.set_outcome(v1::OUTCOME_PASSED);
    verdict.set_sentence(absl::StrCat("PASSED: ", where, ": all ", entries.size(),
                                      " tensors pass every gate", limits, "."));
  }
  for (std::string& qualification : qualifications) {
    verdict.add_qualifications(std::move(qualification));
  }
  return verdict;
}

v1::Verdict NotJudged(absl::string_view where, absl::string_view composition) {
  v1::Verdict verdict;
  verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
  verdict.set_sentence(absl::StrCat("NOT JUDGED: ", where, ": ", composition,
                                    " is a reference, measured and held to no gate."));
  return verdict;
}

}  // namespace plumbline::drift
