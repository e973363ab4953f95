// Targets, ranges and entity tags of HTTP requests.
#include "common/http_message.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  fuzz::Input input(data, size);
  const int64_t file_size = int64_t{1} << (input.Byte() % 63);
  const absl::string_view text = input.Rest();
  if (const auto target = ParseHttpTarget(text); target.has_value()) {
    FUZZ_REQUIRE(!target->path.empty() && target->path[0] == '/');
    FUZZ_REQUIRE(target->path.find('\0') == std::string::npos);
  }
  for (const int64_t bytes : {int64_t{0}, file_size}) {
    ByteRange range;
    if (ParseRange(text, bytes, &range) != RangeKind::kPart) continue;
    FUZZ_REQUIRE(range.offset >= 0 && range.length > 0 && range.offset <= bytes - range.length);
  }
  NamesEntityTag(text, "tag");
  return 0;
}
