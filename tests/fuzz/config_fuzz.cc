// config.json of transformers and decoders.
#include "tests/fuzz/input.h"
#include "worker/h3/config.h"
#include "worker/h3/decoders/config.h"
#include "worker/h3/native_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  fuzz::Input input(data, size);
  const uint8_t kind = input.Byte();
  const absl::string_view text = input.Rest();
  switch (kind % 4) {
    case 0: {
      const auto config = h3::ParseTransformerConfig(text, "F");
      if (!config.ok()) break;
      // What was accepted is accepted again in its canonical form, which is one.
      const std::string canonical = h3::CanonicalConfigJson(*config);
      const auto again = h3::ParseTransformerConfig(canonical, "F");
      FUZZ_REQUIRE(again.ok() && h3::CanonicalConfigJson(*again) == canonical);
      break;
    }
    case 1: {
      h3::IsNativeConfig(text);
      const auto config = h3::ParseNativeConfig(text, "F");
      if (config.ok()) FUZZ_REQUIRE(h3::ValidateTransformerConfig(*config, "F").ok());
      break;
    }
    case 2:
      h3::ParseVideoDecoderConfig(text, "F").IgnoreError();
      break;
    case 3:
      h3::ParseAudioDecoderConfig(text, "F").IgnoreError();
      break;
  }
  return 0;
}
