#include "common/byte_size.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline {
namespace {

constexpr std::pair<absl::string_view, int64_t> kUnits[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
};

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text, absl::string_view field) {
  const absl::Status error =
      FieldError(field, absl::StrCat("is ", Quoted(text)),
                 "a number of bytes above 0, or one with KB, MB, GB, TB, KiB, MiB, GiB or TiB");
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  int64_t number;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number) || number <= 0) return error;
  const absl::string_view unit = absl::StripAsciiWhitespace(text.substr(digits));
  for (const auto& [name, bytes] : kUnits) {
    if (!absl::EqualsIgnoreCase(unit, name)) continue;
    if (number > std::numeric_limits<int64_t>::max() / bytes) return error;
    return number * bytes;
  }
  return error;
}

}  // namespace plumbline
