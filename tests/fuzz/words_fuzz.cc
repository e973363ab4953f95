// Short texts that the worker takes apart: compositions, layouts, generators, sizes.
#include "common/byte_size.h"
#include "tests/fuzz/input.h"
#include "worker/h3/composition.h"
#include "worker/h3/layout.h"
#include "worker/h3/noise_generator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const absl::string_view text = fuzz::Input(data, size).Rest();
  if (const auto composition = h3::ParseComposition(text); composition.ok()) {
    const std::string written = composition->ToString();
    const auto again = h3::ParseComposition(written);
    FUZZ_REQUIRE(again.ok() && again->ToString() == written);
    composition->IsHybrid();
  }
  if (const auto layout = h3::ParseLayout(text, "layout"); layout.ok()) {
    FUZZ_REQUIRE(layout->Rows() > 0 && layout->Rows() <= h3::kMaxRows);
    const auto again = h3::ParseLayout(h3::FormatLayout(*layout), "layout");
    FUZZ_REQUIRE(again.ok() && *again == *layout);
  }
  if (const auto rng = h3::ParseRng(text, "rng"); rng.ok()) {
    const auto again = h3::ParseRng(h3::FormatRng(*rng), "rng");
    FUZZ_REQUIRE(again.ok() && *again == *rng);
  }
  if (const auto bytes = ParseByteSize(text, "memory"); bytes.ok()) {
    FUZZ_REQUIRE(*bytes > 0);
  }
  return 0;
}
