#include "client/flag_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

// Whether `outer` is `field`, a message around it, or the file that the place `field` is in
// ("full_model.rule: tensors").
bool Encloses(absl::string_view outer, absl::string_view field) {
  if (!absl::StartsWith(field, outer)) return false;
  return field.size() == outer.size() || absl::StrContains(".[:", field.substr(outer.size(), 1));
}

}  // namespace

void FlagNames::Add(absl::string_view field, absl::string_view flag, absl::string_view written) {
  flags_.push_back({std::string(field), std::string(flag), std::string(written), false});
}

void FlagNames::AddFile(absl::string_view field, absl::string_view flag, absl::string_view file) {
  Add(field, flag, file);
  flags_.back().is_file = true;
}

const FlagNames::Flag* FlagNames::Find(absl::string_view field) const {
  absl::ConsumePrefix(&field, "spec.");
  const Flag* found = nullptr;
  for (const Flag& flag : flags_) {
    if (!Encloses(flag.field, field)) continue;
    if (found == nullptr || flag.field.size() > found->field.size()) found = &flag;
  }
  return found;
}

absl::Status WithFlags(
    const absl::Status& status,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>> flags) {
  std::vector<FieldViolation> violations = GetFieldViolations(status);
  if (violations.empty()) return status;
  std::string message(status.message());
  for (const auto& [field, flag] : flags) {
    absl::string_view rest = message;
    if (!absl::ConsumePrefix(&rest, absl::StrCat(field, ": "))) continue;
    message = absl::StrCat(flag, ": ", rest);
    break;
  }
  for (FieldViolation& violation : violations) {
    for (const auto& [field, flag] : flags) {
      if (violation.field != field) continue;
      violation.field = std::string(flag);
      break;
    }
  }
  return WithFieldViolations(absl::Status(status.code(), message), violations);
}

}  // namespace plumbline::client
