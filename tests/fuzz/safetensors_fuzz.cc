// Headers of safetensors files.
#include "common/safetensors_header.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  SafetensorsLimits limits;
  limits.max_tensors = 1000;
  const absl::Span<const uint8_t> bytes(data, size);
  const absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(bytes, "F", limits);
  if (!header.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(header.status()));
    return 0;
  }
  FUZZ_REQUIRE(header->data_offset + header->data_bytes == size);
  uint64_t end = 0;
  for (const TensorInfo& tensor : header->tensors) {
    FUZZ_REQUIRE(tensor.begin == end && tensor.end >= tensor.begin);
    FUZZ_REQUIRE(NumElements(tensor.shape) >= 0);
    end = tensor.end;
  }
  FUZZ_REQUIRE(end == header->data_bytes);
  FUZZ_REQUIRE(ParseSafetensorsHeaderAlone(bytes, "F", limits).ok());
  return 0;
}
