// Parts of HTTP/1.1 messages that come from clients.
#ifndef PLUMBLINE_COMMON_HTTP_MESSAGE_H_
#define PLUMBLINE_COMMON_HTTP_MESSAGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace plumbline {

struct HttpTarget {
  std::string path;                          // Decoded; begins with "/".
  std::map<std::string, std::string> query;  // Decoded; of a name given twice, the first.
};

// The target of a request in origin form, RFC 9112, 3.2.1. Nothing for any other form, for a "%"
// without two hex digits, and for a control character, encoded or not, in the path.
std::optional<HttpTarget> ParseHttpTarget(absl::string_view target);

// `text` with every "%XX" decoded; nothing for a "%" without two hex digits.
std::optional<std::string> PercentDecoded(absl::string_view text);

struct ByteRange {
  int64_t offset = 0;
  int64_t length = 0;
};

enum class RangeKind { kWhole, kPart, kUnsatisfiable };

// What a Range header asks for of `size_bytes` bytes, RFC 9110, 14.2; `*range` is set with kPart. A
// header of another form, or of several ranges, is as none: the whole is always a right answer.
RangeKind ParseRange(absl::string_view header, int64_t size_bytes, ByteRange* range);

// Whether an If-None-Match or If-Match header names `entity_tag` (without quotes).
bool NamesEntityTag(absl::string_view header, absl::string_view entity_tag);

// Whether `text` may stand in a header field: it holds no control character, such as would end the
// line.
bool IsFieldValue(absl::string_view text);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_HTTP_MESSAGE_H_
