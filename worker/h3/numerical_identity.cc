#include "worker/h3/numerical_identity.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

// Whether the JSON library, which refuses anything else, can write it.
bool IsUtf8(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) ==
         nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore);
}

}  // namespace

absl::StatusOr<NumericalIdentity> MakeNumericalIdentity(const KernelIdentity& kernel,
                                                        const NumericalFacts& facts) {
  NumericalIdentity identity;
  identity.parts = {{"kernel", kernel.sha256},
                    {"composition", facts.composition},
                    {"device_class", facts.device_class},
                    {"checkpoint", facts.checkpoint}};
  for (const auto& [name, digest] : facts.plugins) {
    identity.parts[absl::StrCat("plugin.", name)] = digest;
  }
  for (const auto& [name, version] : facts.libraries) {
    identity.parts[absl::StrCat("library.", name)] = version;
  }
  for (const auto& [name, value] : identity.parts) {
    if (value.empty()) return FieldError(absl::StrCat("identity.", name), "is empty");
    if (!IsUtf8(name) || !IsUtf8(value)) {
      return FieldError(absl::StrCat("identity.", Quoted(name)), "is not valid UTF-8");
    }
  }
  identity.sha256 = Sha256Hex(CanonicalIdentityJson(identity.parts));
  return identity;
}

std::string CanonicalIdentityJson(const std::map<std::string, std::string>& parts) {
  return nlohmann::json(parts).dump();
}

std::vector<std::string> DifferingParts(const std::map<std::string, std::string>& a,
                                        const std::map<std::string, std::string>& b) {
  std::set<std::string> names;
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != value) names.insert(name);
  }
  for (const auto& [name, value] : b) {
    if (a.count(name) == 0) names.insert(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace plumbline::h3
