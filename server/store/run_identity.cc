#include "server/store/run_identity.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::server {
namespace {

std::string Shown(const std::string* value) {
  return value == nullptr ? "missing" : Quoted(*value);
}

}  // namespace

std::vector<Precondition> DifferingParts(const IdentityParts& stored, const IdentityParts& other,
                                         absl::string_view subject) {
  std::map<std::string, std::pair<const std::string*, const std::string*>> values;
  for (const v1::IdentityPart& part : stored) values[part.name()].first = &part.value();
  for (const v1::IdentityPart& part : other) values[part.name()].second = &part.value();
  std::vector<Precondition> differing;
  for (const auto& [name, pair] : values) {
    const auto& [a, b] = pair;
    if (a != nullptr && b != nullptr && *a == *b) continue;
    differing.push_back({"IDENTITY", absl::StrCat(subject, ": ", name),
                         absl::StrCat("is ", Shown(a), " there and ", Shown(b), " here")});
  }
  return differing;
}

absl::Status CheckSameParts(const IdentityParts& stored, const IdentityParts& other,
                            absl::string_view subject, absl::string_view reason) {
  const std::vector<Precondition> differing = DifferingParts(stored, other, subject);
  if (differing.empty()) return absl::OkStatus();
  return WithReason(WithPreconditions(absl::FailedPreconditionError(absl::StrJoin(
                                          differing, "; ",
                                          [](std::string* out, const Precondition& part) {
                                            absl::StrAppend(out, part.subject, " ",
                                                            part.description);
                                          })),
                                      differing),
                    reason);
}

}  // namespace plumbline::server
