#include "worker/drift/rule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::drift {
namespace {

std::vector<std::string> KeptProviders(const v1::Rule& rule) {
  std::vector<std::string> names;
  for (const v1::RuleProvider& provider : rule.providers()) {
    if (provider.kept()) names.push_back(provider.name());
  }
  return names;
}

// What a provider is held to at one tensor while it is held out.
struct HeldOutError {
  double error = 0;
  double largest_other = 0;
  double floor = 0;

  double Bound(int tenths) const { return EnsembleBound(tenths / 10.0, largest_other, floor); }
};

HeldOutError HeldOutErrorAt(const v1::Rule& rule, const v1::Rule::TensorBound& tensor, int held) {
  HeldOutError result;
  result.floor = FloorOf(rule.floors(), tensor.name());
  for (int i = 0; i < tensor.relative_l2_size(); ++i) {
    const double error = tensor.relative_l2(i);
    if (i == held) {
      result.error = error;
    } else {
      result.largest_other = std::max(result.largest_other, error);
    }
  }
  return result;
}

v1::Rule::HoldOut HoldOut(const v1::Rule& rule, const std::vector<HeldOutError>& errors,
                          const std::string& provider, int tenths) {
  v1::Rule::HoldOut result;
  result.set_k(tenths / 10.0);
  result.set_provider(provider);
  int failing = 0;
  double worst = -1;
  for (size_t i = 0; i < errors.size(); ++i) {
    const double bound = errors[i].Bound(tenths);
    if (errors[i].error > bound) ++failing;
    double ratio = errors[i].error / bound;
    // No floor and no error of the others: any error is beyond every factor.
    if (bound == 0) {
      ratio = errors[i].error == 0 ? 0 : std::numeric_limits<double>::infinity();
    }
    if (ratio <= worst) continue;
    worst = ratio;
    result.set_worst_ratio(ratio);
    result.set_worst_tensor(rule.tensors(static_cast<int>(i)).name());
  }
  result.set_failing(failing);
  result.set_passed(failing == 0);
  return result;
}

// By kept provider, then by tensor.
std::vector<std::vector<HeldOutError>> HeldOutErrors(const v1::Rule& rule, size_t providers) {
  std::vector<std::vector<HeldOutError>> errors(providers);
  for (size_t held = 0; held < providers; ++held) {
    for (const v1::Rule::TensorBound& tensor : rule.tensors()) {
      errors[held].push_back(HeldOutErrorAt(rule, tensor, static_cast<int>(held)));
    }
  }
  return errors;
}

void AddDifference(absl::string_view field, const std::string& of_rule, const std::string& of_run,
                   std::vector<FieldViolation>* violations) {
  if (of_rule == of_run) return;
  violations->push_back(
      {absl::StrCat("rule.binds.", field),
       absl::StrCat("the rule is for ", Quoted(of_rule), ", this job has ", Quoted(of_run))});
}

// At most one name of each side stands for all.
void AddNameDifferences(const v1::Rule& rule, absl::Span<const std::string> names,
                        std::vector<FieldViolation>* violations) {
  std::set<std::string> of_rule;
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) of_rule.insert(tensor.name());
  const std::set<std::string> of_run(names.begin(), names.end());
  const auto add = [&](const std::set<std::string>& a, const std::set<std::string>& b,
                       absl::string_view what) {
    std::vector<std::string> only;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
    if (only.empty()) return;
    violations->push_back({"rule.tensors", absl::StrCat(only.size(), " ", what, ", the first ",
                                                        Quoted(only.front()))});
  };
  add(of_rule, of_run, "tensors of the rule are not in this job");
  add(of_run, of_rule, "tensors of this job are not in the rule");
}

}  // namespace

bool IsGradientTensor(absl::string_view name) {
  return absl::EndsWith(name, ".grad") || absl::StartsWith(name, "parameter.") ||
         absl::StartsWith(name, "input_gradients.");
}

double FloorOf(const v1::Rule::Floors& floors, absl::string_view tensor) {
  return IsGradientTensor(tensor) ? floors.gradient() : floors.forward();
}

double EnsembleBound(double k, double largest_error, double floor) {
  return k * largest_error + floor;
}

std::string TensorNamesSha256(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  Sha256 digest;
  for (const std::string& name : names) {
    digest.Update(name);
    digest.Update("\n");
  }
  return digest.FinishHex();
}

std::vector<v1::Rule::HoldOut> LeaveOneOut(const v1::Rule& rule) {
  const std::vector<std::string> kept = KeptProviders(rule);
  const std::vector<std::vector<HeldOutError>> errors = HeldOutErrors(rule, kept.size());
  const int last = std::min(kMostTenths, static_cast<int>(std::lround(rule.k() * 10)));
  std::vector<v1::Rule::HoldOut> all;
  for (int tenths = kLeastTenths; tenths <= last; ++tenths) {
    for (size_t held = 0; held < kept.size(); ++held) {
      all.push_back(HoldOut(rule, errors[held], kept[held], tenths));
    }
  }
  return all;
}

absl::StatusOr<int> SmallestTenths(const v1::Rule& rule) {
  const std::vector<std::string> kept = KeptProviders(rule);
  const std::vector<std::vector<HeldOutError>> errors = HeldOutErrors(rule, kept.size());
  int tenths = kLeastTenths;
  for (size_t held = 0; held < kept.size(); ++held) {
    for (size_t i = 0; i < errors[held].size(); ++i) {
      const HeldOutError& error = errors[held][i];
      // A bound never shrinks as k grows, so each need only pass from where the last one did.
      while (!(error.error <= error.Bound(tenths))) {
        if (++tenths <= kMostTenths) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "no rule: held out, ", Quoted(kept[held]), " fails at every factor up to ",
            kMostTenths / 10, ": its relative L2 at ",
            Quoted(rule.tensors(static_cast<int>(i)).name()), " is ", error.error,
            ", the largest of the others ", error.largest_other, ", the floor ", error.floor));
      }
    }
  }
  return tenths;
}

absl::Status CheckBinds(const v1::Rule& rule, const v1::Rule::Binds& run,
                        absl::Span<const std::string> names, bool allow_other_device) {
  std::vector<FieldViolation> violations;
  const v1::Rule::Binds& binds = rule.binds();
  AddDifference("checkpoint_sha256", binds.checkpoint_sha256(), run.checkpoint_sha256(),
                &violations);
  AddDifference("inputs_sha256", binds.inputs_sha256(), run.inputs_sha256(), &violations);
  AddNameDifferences(rule, names, &violations);
  if (!allow_other_device && binds.device_class() != run.device_class()) {
    AddDifference("device_class", binds.device_class(), run.device_class(), &violations);
    violations.back().description += "; --allow-other-device accepts it and the verdict says so";
  }
  return FieldErrors(violations);
}

std::string OtherDeviceQualification(const v1::Rule& rule, const v1::Rule::Binds& run) {
  if (rule.binds().device_class() == run.device_class()) return "";
  return absl::StrCat("rule of another device class: ", rule.binds().device_class(), ", not ",
                      run.device_class());
}

}  // namespace plumbline::drift
