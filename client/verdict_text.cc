#include "client/verdict_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/measure_text.h"

namespace plumbline::client {

Ink InkOf(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_PASSED:
      return Ink::kGood;
    case v1::OUTCOME_FAILED:
      return Ink::kBad;
    case v1::OUTCOME_PARTIAL:
      return Ink::kNotice;
    default:
      return Ink::kPlain;
  }
}

std::string VerdictText(const v1::Verdict& verdict, const Style& style) {
  std::string sentence = Printable(verdict.sentence());
  if (sentence.empty()) {
    sentence = absl::AsciiStrToUpper(OutcomeText(verdict.outcome())) + ".";
  }
  std::string out = absl::StrCat(style.Paint(InkOf(verdict.outcome()), sentence), "\n");
  std::string qualifications = absl::StrJoin(verdict.qualifications(), "; ");
  // The service's sentence may end with them already.
  if (!qualifications.empty() && !absl::StrContains(sentence, qualifications)) {
    absl::StrAppend(&out, "limited by: ", style.Paint(Ink::kNotice, qualifications), "\n");
  }
  const v1::FirstFailure& first = verdict.first_failure();
  std::string place = "none";
  if (verdict.has_first_failure()) {
    place = first.entry();
    if (!first.gate().empty()) absl::StrAppend(&place, " (", first.gate(), ")");
    if (!first.where().empty()) absl::StrAppend(&place, " at ", first.where());
  }
  absl::StrAppend(&out, "first_failure: ", style.Paint(InkOf(verdict.outcome()), place), "\n");
  return out;
}

std::string ControlText(const v1::TaskReport& task, const Style& style) {
  if (!task.has_control()) return "";
  const v1::ControlResult& control = task.control();
  std::string expected = control.expected_entry();
  if (!control.expected_gate().empty()) {
    absl::StrAppend(&expected, " (", control.expected_gate(), ")");
  }
  const std::string found =
      control.caught() ? style.Paint(Ink::kGood, absl::StrCat("caught at ", expected))
                       : style.Paint(Ink::kBad, absl::StrCat("NOT CAUGHT at ", expected,
                                                             ": a failure of Plumbline itself"));
  return absl::StrCat("  ", style.Paint(Ink::kFaint, "control"), "      ", control.fault(), " ",
                      found, "\n");
}

}  // namespace plumbline::client
