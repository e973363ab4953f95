#ifndef PLUMBLINE_COMMON_EVIDENCE_CANONICAL_JSON_H_
#define PLUMBLINE_COMMON_EVIDENCE_CANONICAL_JSON_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

// One text for one value, whatever program wrote it, so that a digest over it means something.

namespace plumbline {

// A double with the fewest digits that read back the same, laid out as Python's json does: "0.001",
// "1e-05", "1.0", "1e+16"; "NaN" and "Infinity", which are not JSON.
std::string CanonicalDouble(double value);

// Keys sorted by bytes, no white space, doubles by CanonicalDouble, everything but printable ASCII
// escaped: for what came through ParseJson, the bytes of Python's
//   json.dumps(value, sort_keys=True, separators=(",", ":")).
// In strings that are not valid UTF-8 the bad bytes become U+FFFD.
std::string CanonicalJson(const nlohmann::json& value);

// The same value for a person: members of the outermost `levels` levels each on a line of their
// own, indented by two, whatever lies deeper on the line of its member. Ends in a newline.
std::string ReadableJson(const nlohmann::json& value, int levels);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_CANONICAL_JSON_H_
