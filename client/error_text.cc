#include "client/error_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/suggestion.h"
#include "common/status.h"

namespace plumbline::client {

namespace {

// A file of another kind is wrong in everything that it holds.
constexpr size_t kMostFields = 6;

// The flag as it was typed where an error about a file's contents does not name the file itself.
std::string FlagText(const FlagNames::Flag& flag, absl::string_view error) {
  if (!flag.is_file || absl::StrContains(error, flag.written)) return flag.flag;
  return absl::StrCat(flag.flag, absl::StartsWith(flag.flag, "-") ? "=" : " ", flag.written);
}

// A message that begins with a field, "FIELD: what is wrong", with the flag that set it.
std::string WithFlag(absl::string_view message, const FlagNames& flags) {
  const size_t colon = message.find(": ");
  const FlagNames::Flag* const flag =
      colon == absl::string_view::npos ? nullptr : flags.Find(message.substr(0, colon));
  if (flag == nullptr) return std::string(message);
  return absl::StrCat(FlagText(*flag, message), " (", message.substr(0, colon), ")",
                      message.substr(colon));
}

}  // namespace

std::string ErrorText(const absl::Status& status, const FlagNames& flags, const Style& style) {
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  std::string out = absl::StrCat(style.Paint(Ink::kBad, absl::StatusCodeToString(status.code())));
  // A message that only repeats the violations below is left out.
  const bool repeats =
      !violations.empty() &&
      std::all_of(violations.begin(), violations.end(), [&](const FieldViolation& violation) {
        return absl::StrContains(status.message(), violation.description);
      });
  if (!repeats) {
    absl::StrAppend(&out, ": ", WithFlag(status.message(), flags));
  } else if (violations.size() == 1) {
    absl::StrAppend(&out, ": the request cannot be accepted");
  } else {
    absl::StrAppend(&out, ": ", violations.size(), " fields cannot be accepted");
  }
  absl::StrAppend(&out, "\n");
  size_t shown = 0;
  for (const FieldViolation& violation : violations) {
    if (shown++ == kMostFields) {
      absl::StrAppend(&out, "  and ", violations.size() - kMostFields, " more of the kind\n");
      break;
    }
    const FlagNames::Flag* flag = flags.Find(violation.field);
    if (flag == nullptr) {
      absl::StrAppend(&out, "  ", style.Paint(Ink::kStrong, violation.field), ": ",
                      violation.description, "\n");
      continue;
    }
    absl::StrAppend(&out, "  ", style.Paint(Ink::kStrong, FlagText(*flag, violation.description)),
                    " (", violation.field, "): ", violation.description, "\n");
    const std::string suggestion = SuggestionFor(flag->flag, flag->written);
    if (!suggestion.empty()) absl::StrAppend(&out, "    ", suggestion, "\n");
  }
  return out;
}

}  // namespace plumbline::client
