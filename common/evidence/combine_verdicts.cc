#include "common/evidence/combine_verdicts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plumbline {
namespace {

// How strongly an outcome decides.
int Weight(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_FAILED:
      return 3;
    case v1::OUTCOME_PARTIAL:
      return 2;
    case v1::OUTCOME_PASSED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

v1::Verdict CombineVerdicts(const std::vector<std::pair<std::string, v1::Verdict>>& tasks) {
  v1::Verdict combined;
  combined.set_outcome(v1::OUTCOME_NOT_JUDGED);
  if (tasks.empty()) return combined;
  const auto decides =
      std::max_element(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) {
        return Weight(a.second.outcome()) < Weight(b.second.outcome());
      });
  if (tasks.size() == 1) return decides->second;

  if (Weight(decides->second.outcome()) > 0) combined.set_outcome(decides->second.outcome());
  if (combined.outcome() == v1::OUTCOME_PASSED) {
    const auto judged = std::count_if(tasks.begin(), tasks.end(), [](const auto& task) {
      return Weight(task.second.outcome()) > 0;
    });
    combined.set_sentence(absl::StrCat("PASSED: all ", judged, " judged tasks passed."));
  } else if (!decides->second.sentence().empty()) {
    combined.set_sentence(absl::StrCat(decides->first, ": ", decides->second.sentence()));
  }
  if (decides->second.has_first_failure()) {
    *combined.mutable_first_failure() = decides->second.first_failure();
  }
  for (const auto& [title, verdict] : tasks) {
    for (const std::string& qualification : verdict.qualifications()) {
      const auto& known = combined.qualifications();
      if (std::find(known.begin(), known.end(), qualification) == known.end()) {
        combined.add_qualifications(qualification);
      }
    }
  }
  return combined;
}

}  // namespace plumbline
