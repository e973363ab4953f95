#ifndef PLUMBLINE_COMMON_JSON_H_
#define PLUMBLINE_COMMON_JSON_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

// JSON from files and requests, read as hostile. A caller that keeps a value includes
// "nlohmann/json.hpp" itself. `where` in every function names the source in errors, e.g.
// "transformer/config.json"; all errors are INVALID_ARGUMENT.

namespace plumbline {

struct JsonLimits {
  size_t max_bytes = 16 << 20;
  size_t max_values = 1 << 20;  // Bounds the memory that a short text can ask for.
  int max_depth = 32;
};

// Parses one JSON text (RFC 8259). Also refused: a key twice in one object, invalid UTF-8, a NUL or
// anything else after the value, a number out of range, and whatever is beyond `limits`. Syntax
// errors give line and column.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view where,
                                         const JsonLimits& limits = {});

// The getters read `field` of `object`. Errors read "WHERE: FIELD: what is wrong; accepted: ..."
// and carry a violation of the field. A number is an integer only if written as one: 8.0 is none.
absl::StatusOr<int64_t> GetInt(const nlohmann::json& object, absl::string_view where,
                               absl::string_view field,
                               int64_t min = std::numeric_limits<int64_t>::min(),
                               int64_t max = std::numeric_limits<int64_t>::max());

// Accepts an integer too.
absl::StatusOr<double> GetDouble(const nlohmann::json& object, absl::string_view where,
                                 absl::string_view field,
                                 double min = std::numeric_limits<double>::lowest(),
                                 double max = std::numeric_limits<double>::max());

absl::StatusOr<bool> GetBool(const nlohmann::json& object, absl::string_view where,
                             absl::string_view field);

absl::StatusOr<std::string> GetString(const nlohmann::json& object, absl::string_view where,
                                      absl::string_view field);

// An array of between `min_size` and `max_size` integers, each between `min` and `max`.
absl::StatusOr<std::vector<int64_t>> GetIntArray(const nlohmann::json& object,
                                                 absl::string_view where, absl::string_view field,
                                                 size_t min_size, size_t max_size, int64_t min,
                                                 int64_t max);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_JSON_H_
