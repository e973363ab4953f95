// JSON, and its canonical form, over which digests are taken.
#include <nlohmann/json.hpp>
#include <string>

#include "common/evidence/canonical_json.h"
#include "common/json.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const absl::StatusOr<nlohmann::json> value = ParseJson(fuzz::Input(data, size).Rest(), "F");
  if (!value.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(value.status()));
    return 0;
  }
  // Each value has one canonical form, which is a text of that value; so is the readable one.
  const std::string canonical = CanonicalJson(*value);
  for (const std::string& text : {canonical, ReadableJson(*value, 2)}) {
    const absl::StatusOr<nlohmann::json> again = ParseJson(text, "F");
    FUZZ_REQUIRE(again.ok() && CanonicalJson(*again) == canonical);
  }
  return 0;
}
