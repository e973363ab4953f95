#include "common/utf8.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "nlohmann/json.hpp"

namespace plumbline {

std::string ToUtf8(std::string text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isascii(c); })) {
    return text;
  }
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  return nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, kReplace))
      .get<std::string>();
}

bool IsUtf8(const std::string& text) { return ToUtf8(text) == text; }

}  // namespace plumbline
