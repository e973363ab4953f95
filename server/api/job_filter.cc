#include "server/api/job_filter.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace plumbline::server {
namespace {

template <typename Values, typename Value>
bool IsOneOf(const Values& values, const Value& value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

bool Contains(const std::string& text, const std::string& lower_case_part) {
  return absl::StrContains(absl::AsciiStrToLower(text), lower_case_part);
}

}  // namespace

bool MatchesState(const v1::JobFilter& filter, const v1::Job& job) {
  return IsOneOf(filter.states(), job.state()) &&
         IsOneOf(filter.outcomes(), job.verdict().outcome());
}

bool MatchesIdentity(const v1::JobFilter& filter, const v1::Job& job) {
  if (!IsOneOf(filter.kinds(), job.kind()) || !IsOneOf(filter.names(), job.name())) return false;
  const auto& labels = job.spec().labels();
  for (const auto& [key, value] : filter.labels()) {
    const auto label = labels.find(key);
    if (label == labels.end() || label->second != value) return false;
  }
  if (filter.text().empty()) return true;
  const std::string text = absl::AsciiStrToLower(filter.text());
  return Contains(job.name(), text) || Contains(job.spec().checkpoint(), text) ||
         Contains(job.spec().composition(), text) ||
         std::any_of(labels.begin(), labels.end(),
                     [&text](const auto& label) { return Contains(label.second, text); });
}

}  // namespace plumbline::server
