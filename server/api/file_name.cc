#include "server/api/file_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "common/status.h"

namespace plumbline::server {

absl::Status CheckFileName(absl::string_view name, absl::string_view field) {
  constexpr size_t kMaxBytes = 255;
  const bool folder = absl::StrContains(name, '/') || absl::StrContains(name, '\\');
  if (!folder && name != "." && name != "..") return CheckChosenName(name, field, kMaxBytes);
  return FieldError(field, absl::StrCat(Quoted(name), " is no file name"),
                    "1 to 255 bytes without a folder");
}

absl::Status CheckMediaType(absl::string_view type, absl::string_view field) {
  constexpr size_t kMaxBytes = 127;
  const auto is_name = [](absl::string_view name) {
    return !name.empty() && absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
           std::all_of(name.begin(), name.end(), [](char c) {
             return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    absl::StrContains("!#$&-^_.+", c);
           });
  };
  const size_t slash = type.find('/');
  if (type.size() <= kMaxBytes && slash != absl::string_view::npos &&
      is_name(type.substr(0, slash)) && is_name(type.substr(slash + 1))) {
    return absl::OkStatus();
  }
  return FieldError(field, absl::StrCat(Quoted(type), " is no media type"),
                    "TYPE/SUBTYPE, at most 127 letters, digits and !#$&-^_.+");
}

}  // namespace plumbline::server
