#include "common/printable.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace plumbline {

std::string Printable(absl::string_view untrusted) {
  std::string text;
  for (const char c : untrusted) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isprint(byte)) {
      text.push_back(c);
    } else {
      absl::StrAppend(&text, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return text;
}

}  // namespace plumbline
