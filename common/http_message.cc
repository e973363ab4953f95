#include "common/http_message.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace plumbline {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }

// Digits alone: SimpleAtoi takes signs and spaces too.
bool ParseOffset(absl::string_view text, int64_t* value) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, value);
}

}  // namespace

std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::optional<HttpTarget> ParseHttpTarget(absl::string_view target) {
  if (!absl::StartsWith(target, "/")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  HttpTarget result;
  const std::optional<std::string> path = PercentDecoded(parts.first);
  if (!path.has_value() || std::any_of(path->begin(), path->end(), IsControl)) return std::nullopt;
  result.path = *path;
  for (const absl::string_view each : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(each, absl::MaxSplits('=', 1));
    const std::optional<std::string> name = PercentDecoded(pair.first);
    const std::optional<std::string> value = PercentDecoded(pair.second);
    if (!name.has_value() || !value.has_value()) return std::nullopt;
    result.query.emplace(*name, *value);
  }
  return result;
}

bool IsFieldValue(absl::string_view text) {
  return std::none_of(text.begin(), text.end(), IsControl);
}

RangeKind ParseRange(absl::string_view header, int64_t size_bytes, ByteRange* range) {
  if (!absl::ConsumePrefix(&header, "bytes=")) return RangeKind::kWhole;
  const size_t dash = header.find('-');
  if (dash == absl::string_view::npos) return RangeKind::kWhole;
  const absl::string_view first = header.substr(0, dash);
  const absl::string_view last = header.substr(dash + 1);
  int64_t from = 0;
  int64_t to = size_bytes - 1;
  if (first.empty()) {
    int64_t suffix = 0;
    if (!ParseOffset(last, &suffix)) return RangeKind::kWhole;
    if (suffix == 0 || size_bytes == 0) return RangeKind::kUnsatisfiable;
    from = size_bytes - std::min(suffix, size_bytes);
  } else {
    if (!ParseOffset(first, &from)) return RangeKind::kWhole;
    if (!last.empty()) {
      if (!ParseOffset(last, &to) || to < from) return RangeKind::kWhole;
      to = std::min(to, size_bytes - 1);
    }
    if (from >= size_bytes) return RangeKind::kUnsatisfiable;
  }
  *range = {from, to - from + 1};
  return RangeKind::kPart;
}

bool NamesEntityTag(absl::string_view header, absl::string_view entity_tag) {
  if (entity_tag.empty()) return false;
  const std::string quoted = absl::StrCat("\"", entity_tag, "\"");
  for (absl::string_view each : absl::StrSplit(header, ',')) {
    each = absl::StripAsciiWhitespace(each);
    absl::ConsumePrefix(&each, "W/");
    if (each == quoted || each == "*") return true;
  }
  return false;
}

}  // namespace plumbline
