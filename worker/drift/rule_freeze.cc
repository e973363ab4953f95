#include "worker/drift/rule_freeze.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"

namespace plumbline::drift {
namespace {

// What every node ran, in canonical form; empty for a capture.
std::string Implementations(const v1::NumericalIdentity& identity) {
  for (const v1::IdentityPart& part : identity.parts()) {
    if (part.name() == "composition") return part.value();
  }
  return "";
}

std::string DroppedBecause(const ProviderErrors& provider,
                           const std::vector<const ProviderErrors*>& kept) {
  const std::string implementations = Implementations(provider.identity);
  for (const ProviderErrors* earlier : kept) {
    if (!implementations.empty() && implementations == Implementations(earlier->identity)) {
      return absl::StrCat("implementations equal ", earlier->name);
    }
    if (provider.errors == earlier->errors) return absl::StrCat("errors equal ", earlier->name);
  }
  return "";
}

absl::Status CheckNames(const std::vector<ProviderErrors>& providers) {
  std::set<std::string> names;
  for (const ProviderErrors& provider : providers) {
    if (!names.insert(provider.name).second) {
      return FieldError(absl::StrCat("providers.", Quoted(provider.name)), "appears twice");
    }
  }
  return absl::OkStatus();
}

// The tensor that `a` has and `b` lacks, or null.
const std::string* OnlyIn(const ProviderErrors& a, const ProviderErrors& b) {
  for (const auto& [tensor, error] : a.errors) {
    if (b.errors.count(tensor) == 0) return &tensor;
  }
  return nullptr;
}

// All tables name the same tensors and hold finite errors.
absl::Status CheckTables(const std::vector<const ProviderErrors*>& kept) {
  const ProviderErrors& first = *kept.front();
  for (const ProviderErrors* provider : kept) {
    const std::string field = absl::StrCat("providers.", Quoted(provider->name));
    if (provider->errors.empty()) return FieldError(field, "has no errors");
    for (const auto& [tensor, error] : provider->errors) {
      if (std::isfinite(error.relative_l2) && std::isfinite(error.max_abs)) continue;
      return FieldError(
          field, absl::StrCat("its difference from golden at ", Quoted(tensor), " is not finite"));
    }
    if (const std::string* tensor = OnlyIn(*provider, first)) {
      return FieldError(
          field, absl::StrCat("has ", Quoted(*tensor), ", which ", Quoted(first.name), " lacks"));
    }
    if (const std::string* tensor = OnlyIn(first, *provider)) {
      return FieldError(
          field, absl::StrCat("lacks ", Quoted(*tensor), ", which ", Quoted(first.name), " has"));
    }
  }
  return absl::OkStatus();
}

absl::Status TooFew(const v1::Rule& rule, size_t kept) {
  std::vector<std::string> dropped;
  for (const v1::RuleProvider& provider : rule.providers()) {
    if (provider.kept()) continue;
    dropped.push_back(absl::StrCat(provider.name(), " (", provider.dropped_because(), ")"));
  }
  const std::string why =
      dropped.empty() ? "" : absl::StrCat("; dropped: ", absl::StrJoin(dropped, ", "));
  return absl::FailedPreconditionError(
      absl::StrCat("no rule: ", kept, " of ", rule.providers_size(),
                   " providers are left and a rule needs ", kLeastProviders, why));
}

}  // namespace

absl::StatusOr<v1::Rule> FreezeRule(const std::vector<ProviderErrors>& providers,
                                    const v1::Rule::Binds& binds) {
  PLUMBLINE_RETURN_IF_ERROR(CheckNames(providers));
  v1::Rule rule;
  rule.set_format(std::string(kRuleFormat));
  rule.set_origin(v1::RULE_ORIGIN_FROZEN);
  rule.mutable_floors()->set_forward(kForwardFloor);
  rule.mutable_floors()->set_gradient(kGradientFloor);
  *rule.mutable_binds() = binds;

  std::vector<const ProviderErrors*> kept;
  for (const ProviderErrors& provider : providers) {
    v1::RuleProvider& listed = *rule.add_providers();
    listed.set_name(provider.name);
    if (provider.identity.parts_size() > 0) *listed.mutable_identity() = provider.identity;
    listed.set_dropped_because(DroppedBecause(provider, kept));
    listed.set_kept(listed.dropped_because().empty());
    if (listed.kept()) kept.push_back(&provider);
  }
  if (kept.size() < kLeastProviders) return TooFew(rule, kept.size());
  PLUMBLINE_RETURN_IF_ERROR(CheckTables(kept));

  std::vector<std::string> names;
  for (const auto& [name, error] : kept.front()->errors) {
    v1::Rule::TensorBound& tensor = *rule.add_tensors();
    tensor.set_name(name);
    for (const ProviderErrors* provider : kept) {
      tensor.add_relative_l2(provider->errors.at(name).relative_l2);
      tensor.add_max_abs(provider->errors.at(name).max_abs);
    }
    names.push_back(name);
  }
  rule.mutable_binds()->set_tensor_names_sha256(TensorNamesSha256(std::move(names)));

  PLUMBLINE_ASSIGN_OR_RETURN(const int tenths, SmallestTenths(rule));
  rule.set_k(tenths / 10.0);
  for (v1::Rule::TensorBound& tensor : *rule.mutable_tensors()) {
    const double largest =
        *std::max_element(tensor.relative_l2().begin(), tensor.relative_l2().end());
    tensor.set_bound(EnsembleBound(rule.k(), largest, FloorOf(rule.floors(), tensor.name())));
    if (!std::isfinite(tensor.bound())) {
      return FieldError(absl::StrCat("tensors.", Quoted(tensor.name())),
                        "its errors are too large for a bound");
    }
  }
  rule.set_sha256(RuleSha256(rule));
  // What is handed on is what a reader of the file gets: one check for both.
  return ReadRule(RuleFileText(rule), "rule");
}

std::vector<ProviderErrors> ProviderErrorsOf(const v1::FullModelReport& report) {
  std::vector<ProviderErrors> providers;
  for (int i = 0; i < report.providers_size(); ++i) {
    ProviderErrors provider;
    provider.name = report.providers(i).name();
    provider.identity = report.providers(i).identity();
    for (const v1::FullModelTensor& tensor : report.tensors()) {
      if (i >= tensor.provider_errors_size()) continue;
      const v1::TensorComparison& error = tensor.provider_errors(i);
      provider.errors[tensor.name()] = {error.relative_l2(), error.max_abs()};
    }
    providers.push_back(std::move(provider));
  }
  return providers;
}

}  // namespace plumbline::drift
