#include "server/store/run_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

constexpr size_t kIdDigits = 64;
constexpr size_t kLeastPrefixDigits = 8;

}  // namespace

absl::StatusOr<std::string> ParseRunName(absl::string_view name, absl::string_view field,
                                         bool allow_prefix) {
  absl::string_view id = name;
  const bool is_named = absl::ConsumePrefix(&id, "runs/");
  const bool fits = allow_prefix ? id.size() >= kLeastPrefixDigits && id.size() <= kIdDigits
                                 : id.size() == kIdDigits;
  const bool is_hex = id.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
  if (!is_named || !fits || !is_hex) {
    return FieldError(
        field, absl::StrCat(Quoted(name), " is no name of a run"),
        absl::StrCat("runs/ID, ID of ", allow_prefix ? "8 to " : "", "64 of [0-9a-f]"));
  }
  return std::string(id);
}

}  // namespace plumbline::server
