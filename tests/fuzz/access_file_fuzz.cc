// Access files and tokens.
#include "common/access/access_file.h"
#include "common/access/token.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const absl::string_view text = fuzz::Input(data, size).Rest();
  ParseToken(text);
  const absl::StatusOr<AccessFile> file = ParseAccessFile(text, "F");
  if (!file.ok()) return 0;
  const std::string written = FormatAccessFile(*file);
  const absl::StatusOr<AccessFile> again = ParseAccessFile(written, "F");
  FUZZ_REQUIRE(again.ok() && FormatAccessFile(*again) == written);
  return 0;
}
