#include "server/api/file_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::server {

absl::Status CheckFileName(absl::string_view name, absl::string_view field) {
  constexpr size_t kMaxBytes = 255;
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (printable && !name.empty() && name.size() <= kMaxBytes && name != "." && name != "..") {
    return absl::OkStatus();
  }
  return FieldError(field, absl::StrCat(Quoted(name), " is no file name"),
                    "1 to 255 bytes without a folder");
}

}  // namespace plumbline::server
