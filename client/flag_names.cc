#include "client/flag_names.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

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

}  // namespace plumbline::client
