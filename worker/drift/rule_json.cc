#include "worker/drift/rule_json.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json.h"
#include "common/status.h"
#include "worker/drift/rule.h"

namespace plumbline::drift {
namespace {

using nlohmann::json;

constexpr size_t kMostCharacters = 1024;
constexpr size_t kMostIdentityParts = 64;
constexpr double kLargest = std::numeric_limits<double>::max();

absl::string_view OriginName(v1::RuleOrigin origin) {
  return origin == v1::RULE_ORIGIN_MANUAL ? "manual" : "frozen";
}

json IdentityToJson(const v1::NumericalIdentity& identity) {
  json parts = json::object();
  for (const v1::IdentityPart& part : identity.parts()) parts[part.name()] = part.value();
  return {{"sha256", identity.sha256()}, {"parts", std::move(parts)}};
}

json ProviderToJson(const v1::RuleProvider& provider) {
  json result = {{"name", provider.name()},
                 {"kept", provider.kept()},
                 {"dropped_because", provider.dropped_because()}};
  if (provider.has_identity()) result["identity"] = IdentityToJson(provider.identity());
  return result;
}

bool IsPrintable(absl::string_view text) {
  return text.size() <= kMostCharacters &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isprint(c); });
}

bool IsDigest(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || ('a' <= c && c <= 'f');
         });
}

class Reader {
 public:
  explicit Reader(absl::string_view where) : where_(where) {}

  absl::StatusOr<v1::Rule> Read(const json& file) {
    v1::Rule rule;
    PLUMBLINE_RETURN_IF_ERROR(CheckKeys(
        file, where_, {"format", "origin", "k", "floors", "binds", "providers", "tensors"},
        {"sha256"}));
    PLUMBLINE_ASSIGN_OR_RETURN(*rule.mutable_format(), GetString(file, where_, "format"));
    if (rule.format() != kRuleFormat) {
      return FieldError(At("format"), absl::StrCat("is ", Quoted(rule.format())), kRuleFormat);
    }
    PLUMBLINE_RETURN_IF_ERROR(ReadOrigin(file, &rule));
    PLUMBLINE_RETURN_IF_ERROR(ReadFactor(file, &rule));
    PLUMBLINE_RETURN_IF_ERROR(ReadFloors(file["floors"], rule.mutable_floors()));
    PLUMBLINE_RETURN_IF_ERROR(ReadBinds(file["binds"], rule.mutable_binds()));
    PLUMBLINE_RETURN_IF_ERROR(ReadProviders(file["providers"], &rule));
    PLUMBLINE_RETURN_IF_ERROR(ReadTensors(file["tensors"], &rule));
    if (file.contains("sha256")) {
      PLUMBLINE_ASSIGN_OR_RETURN(*rule.mutable_sha256(), GetString(file, where_, "sha256"));
    }
    return rule;
  }

 private:
  std::string At(absl::string_view field) const { return absl::StrCat(where_, ": ", field); }

  absl::Status CheckKeys(const json& object, absl::string_view place,
                         std::initializer_list<absl::string_view> required,
                         std::initializer_list<absl::string_view> optional = {}) const {
    const std::string accepted = absl::StrCat(
        "an object of ", absl::StrJoin(required, ", "),
        optional.size() == 0 ? "" : absl::StrCat(", optionally ", absl::StrJoin(optional, ", ")));
    if (!object.is_object()) return FieldError(place, "is no object", accepted);
    for (absl::string_view key : required) {
      if (!object.contains(std::string(key))) {
        return FieldError(place, absl::StrCat("lacks ", key), accepted);
      }
    }
    for (const auto& [key, value] : object.items()) {
      const auto is_key = [&key = key](absl::string_view name) { return name == key; };
      if (std::none_of(required.begin(), required.end(), is_key) &&
          std::none_of(optional.begin(), optional.end(), is_key)) {
        return FieldError(place, absl::StrCat("has the unknown key ", Quoted(key)), accepted);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Text(const json& object, absl::string_view place,
                                   absl::string_view field) const {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string text, GetString(object, place, field));
    if (IsPrintable(text)) return text;
    return FieldError(absl::StrCat(place, ": ", field), absl::StrCat("is ", Quoted(text)),
                      absl::StrCat("up to ", kMostCharacters, " printable ASCII characters"));
  }

  absl::StatusOr<std::string> Digest(const json& object, absl::string_view place,
                                     absl::string_view field) const {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string text, GetString(object, place, field));
    if (IsDigest(text)) return text;
    return FieldError(absl::StrCat(place, ": ", field), absl::StrCat("is ", Quoted(text)),
                      "64 lower-case hexadecimal digits");
  }

  absl::Status ReadOrigin(const json& file, v1::Rule* rule) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string origin, GetString(file, where_, "origin"));
    for (v1::RuleOrigin known : {v1::RULE_ORIGIN_FROZEN, v1::RULE_ORIGIN_MANUAL}) {
      if (origin == OriginName(known)) rule->set_origin(known);
    }
    if (rule->origin() != v1::RULE_ORIGIN_UNSPECIFIED) return absl::OkStatus();
    return FieldError(At("origin"), absl::StrCat("is ", Quoted(origin)), "frozen, manual");
  }

  absl::Status ReadFactor(const json& file, v1::Rule* rule) const {
    PLUMBLINE_ASSIGN_OR_RETURN(
        const double k, GetDouble(file, where_, "k", kLeastTenths / 10.0, kMostTenths / 10.0));
    if (k != std::lround(k * 10) / 10.0) {
      return FieldError(At("k"), absl::StrCat("is ", k), "a multiple of 0.1");
    }
    rule->set_k(k);
    return absl::OkStatus();
  }

  absl::Status ReadFloors(const json& floors, v1::Rule::Floors* result) const {
    const std::string place = At("floors");
    PLUMBLINE_RETURN_IF_ERROR(CheckKeys(floors, place, {"forward", "gradient"}));
    PLUMBLINE_ASSIGN_OR_RETURN(const double forward,
                               GetDouble(floors, place, "forward", 0, kLargest));
    PLUMBLINE_ASSIGN_OR_RETURN(const double gradient,
                               GetDouble(floors, place, "gradient", 0, kLargest));
    result->set_forward(forward);
    result->set_gradient(gradient);
    return absl::OkStatus();
  }

  absl::Status ReadBinds(const json& binds, v1::Rule::Binds* result) const {
    const std::string place = At("binds");
    PLUMBLINE_RETURN_IF_ERROR(
        CheckKeys(binds, place,
                  {"checkpoint_sha256", "inputs_sha256", "tensor_names_sha256", "device_class"}));
    PLUMBLINE_ASSIGN_OR_RETURN(*result->mutable_checkpoint_sha256(),
                               Digest(binds, place, "checkpoint_sha256"));
    PLUMBLINE_ASSIGN_OR_RETURN(*result->mutable_inputs_sha256(),
                               Digest(binds, place, "inputs_sha256"));
    PLUMBLINE_ASSIGN_OR_RETURN(*result->mutable_tensor_names_sha256(),
                               Digest(binds, place, "tensor_names_sha256"));
    PLUMBLINE_ASSIGN_OR_RETURN(*result->mutable_device_class(), Text(binds, place, "device_class"));
    if (result->device_class().empty()) {
      return FieldError(absl::StrCat(place, ": device_class"), "is empty");
    }
    return absl::OkStatus();
  }

  absl::Status ReadProviders(const json& providers, v1::Rule* rule) {
    if (!providers.is_array() || providers.empty() || providers.size() > kMostProviders) {
      return FieldError(At("providers"), "is no list of providers",
                        absl::StrCat("1 to ", kMostProviders, " objects"));
    }
    std::set<std::string> names;
    for (const json& provider : providers) {
      const std::string place = At(absl::StrCat("providers[", rule->providers_size(), "]"));
      v1::RuleProvider& result = *rule->add_providers();
      PLUMBLINE_RETURN_IF_ERROR(
          CheckKeys(provider, place, {"name", "kept", "dropped_because"}, {"identity"}));
      PLUMBLINE_ASSIGN_OR_RETURN(*result.mutable_name(), Text(provider, place, "name"));
      PLUMBLINE_ASSIGN_OR_RETURN(*result.mutable_dropped_because(),
                                 Text(provider, place, "dropped_because"));
      PLUMBLINE_ASSIGN_OR_RETURN(const bool kept, GetBool(provider, place, "kept"));
      result.set_kept(kept);
      if (kept != result.dropped_because().empty()) {
        return FieldError(place, "is kept and dropped, or neither",
                          "kept, or a reason in dropped_because");
      }
      if (!names.insert(result.name()).second) {
        return FieldError(place, absl::StrCat("is the second ", Quoted(result.name())));
      }
      if (kept) kept_.push_back(result.name());
      if (!provider.contains("identity")) continue;
      PLUMBLINE_RETURN_IF_ERROR(ReadIdentity(provider["identity"], absl::StrCat(place, ".identity"),
                                             result.mutable_identity()));
    }
    if (!kept_.empty()) return absl::OkStatus();
    return FieldError(At("providers"), "none is kept", "at least one");
  }

  absl::Status ReadIdentity(const json& identity, const std::string& place,
                            v1::NumericalIdentity* result) const {
    PLUMBLINE_RETURN_IF_ERROR(CheckKeys(identity, place, {"sha256", "parts"}));
    PLUMBLINE_ASSIGN_OR_RETURN(*result->mutable_sha256(), Digest(identity, place, "sha256"));
    const json& parts = identity["parts"];
    if (!parts.is_object() || parts.size() > kMostIdentityParts) {
      return FieldError(absl::StrCat(place, ".parts"), "is no object of parts",
                        absl::StrCat("up to ", kMostIdentityParts, " strings by name"));
    }
    for (const auto& [name, value] : parts.items()) {
      if (!IsPrintable(name)) {
        return FieldError(absl::StrCat(place, ".parts"), absl::StrCat("has ", Quoted(name)));
      }
      // A composition names every node, so it may be long.
      if (!value.is_string()) {
        return FieldError(absl::StrCat(place, ".parts.", name), "is no string", "a string");
      }
      v1::IdentityPart& part = *result->add_parts();
      part.set_name(name);
      part.set_value(value.get<std::string>());
    }
    return absl::OkStatus();
  }

  absl::Status ReadTensors(const json& tensors, v1::Rule* rule) const {
    if (!tensors.is_object() || tensors.empty() || tensors.size() > kMostTensors) {
      return FieldError(At("tensors"), "is no object of tensors",
                        absl::StrCat("1 to ", kMostTensors, " bounds by name"));
    }
    for (const auto& [name, tensor] : tensors.items()) {
      const std::string place = At(absl::StrCat("tensors.", Quoted(name)));
      if (name.empty() || !IsPrintable(name)) return FieldError(place, "is no tensor's name");
      v1::Rule::TensorBound& result = *rule->add_tensors();
      result.set_name(name);
      PLUMBLINE_RETURN_IF_ERROR(CheckKeys(tensor, place, {"bound", "errors"}));
      PLUMBLINE_ASSIGN_OR_RETURN(const double bound,
                                 GetDouble(tensor, place, "bound", 0, kLargest));
      result.set_bound(bound);
      PLUMBLINE_RETURN_IF_ERROR(
          ReadErrors(tensor["errors"], absl::StrCat(place, ".errors"), &result));
    }
    return absl::OkStatus();
  }

  absl::Status ReadErrors(const json& errors, const std::string& place,
                          v1::Rule::TensorBound* result) const {
    if (!errors.is_object() || errors.size() != kept_.size()) {
      return FieldError(place, "is not one pair for each provider kept",
                        absl::StrJoin(kept_, ", "));
    }
    for (const std::string& provider : kept_) {
      const auto found = errors.find(provider);
      if (found == errors.end()) {
        return FieldError(place, absl::StrCat("lacks ", Quoted(provider)),
                          absl::StrJoin(kept_, ", "));
      }
      const std::string field = absl::StrCat(place, ".", Quoted(provider));
      if (!found->is_array() || found->size() != 2) {
        return FieldError(field, "is no pair", "[relative_l2, max_abs]");
      }
      for (int i = 0; i < 2; ++i) {
        const json& number = (*found)[i];
        const double value = number.is_number() ? number.get<double>() : -1;
        if (!(value >= 0)) {
          return FieldError(absl::StrCat(field, "[", i, "]"), "is no error",
                            "a number of at least 0");
        }
        if (i == 0) {
          result->add_relative_l2(value);
        } else {
          result->add_max_abs(value);
        }
      }
    }
    return absl::OkStatus();
  }

  const std::string where_;
  std::vector<std::string> kept_;
};

}  // namespace

json RuleToJson(const v1::Rule& rule) {
  json providers = json::array();
  std::vector<std::string> kept;
  for (const v1::RuleProvider& provider : rule.providers()) {
    providers.push_back(ProviderToJson(provider));
    if (provider.kept()) kept.push_back(provider.name());
  }
  json tensors = json::object();
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) {
    json errors = json::object();
    for (size_t i = 0; i < kept.size(); ++i) {
      const int index = static_cast<int>(i);
      errors[kept[i]] = {tensor.relative_l2(index), tensor.max_abs(index)};
    }
    tensors[tensor.name()] = {{"bound", tensor.bound()}, {"errors", std::move(errors)}};
  }
  const v1::Rule::Binds& binds = rule.binds();
  return {
      {"format", rule.format()},
      {"origin", OriginName(rule.origin())},
      {"k", rule.k()},
      {"floors", {{"forward", rule.floors().forward()}, {"gradient", rule.floors().gradient()}}},
      {"binds",
       {{"checkpoint_sha256", binds.checkpoint_sha256()},
        {"inputs_sha256", binds.inputs_sha256()},
        {"tensor_names_sha256", binds.tensor_names_sha256()},
        {"device_class", binds.device_class()}}},
      {"providers", std::move(providers)},
      {"tensors", std::move(tensors)}};
}

absl::StatusOr<v1::Rule> RuleFromJson(const json& json, absl::string_view where) {
  return Reader(where).Read(json);
}

}  // namespace plumbline::drift
