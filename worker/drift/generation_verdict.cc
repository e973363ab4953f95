#include "worker/drift/generation_verdict.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::drift {

v1::Verdict GenerationVerdict(uint64_t seed, int32_t steps,
                              const std::optional<v1::FirstFailure>& failure,
                              const std::vector<std::string>& qualifications) {
  v1::Verdict verdict;
  std::string sentence;
  if (failure.has_value()) {
    verdict.set_outcome(v1::OUTCOME_FAILED);
    *verdict.mutable_first_failure() = *failure;
    sentence = absl::StrCat("FAILED: seed ", seed, ": ");
    if (failure->gate() == kSensitivityGate) {
      absl::StrAppend(&sentence, "changing ", failure->entry(), " does not change both velocities");
    } else {
      absl::StrAppend(&sentence, "first failure ", failure->entry(), " (", failure->gate(), ")");
    }
  } else {
    verdict.set_outcome(v1::OUTCOME_PASSED);
    sentence = absl::StrCat("PASSED: seed ", seed, ": ", steps,
                            " steps, every input reaches both velocities");
  }
  for (const std::string& qualification : qualifications) {
    verdict.add_qualifications(qualification);
  }
  if (verdict.qualifications_size() > 0) {
    absl::StrAppend(&sentence, " (", absl::StrJoin(verdict.qualifications(), "; "), ")");
  }
  verdict.set_sentence(absl::StrCat(sentence, "."));
  return verdict;
}

}  // namespace plumbline::drift
