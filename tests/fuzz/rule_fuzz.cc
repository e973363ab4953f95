// Rule files.
#include "tests/fuzz/input.h"
#include "worker/drift/rule_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const absl::string_view text = fuzz::Input(data, size).Rest();
  const auto rule = drift::ReadRule(text, "F");
  // A digest that is right is not found by chance: what sealing makes of it has one.
  const auto sealed = drift::SealRule(text, "F");
  if (rule.ok()) FUZZ_REQUIRE(drift::RuleSha256(*rule) == rule->sha256());
  if (sealed.ok()) FUZZ_REQUIRE(drift::RuleSha256(*sealed) == sealed->sha256());
  return 0;
}
