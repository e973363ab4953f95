// Contracts of generations.
#include "tests/fuzz/input.h"
#include "worker/h3/config.h"
#include "worker/h3/generation_contract.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const auto contract = h3::ParseGenerationContract(fuzz::Input(data, size).Rest(), "F");
  if (!contract.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(contract.status()));
    return 0;
  }
  FUZZ_REQUIRE(contract->AlignedFrames() > 0 && contract->LatentFrames() > 0);
  FUZZ_REQUIRE(contract->LatentHeight() > 0 && contract->LatentWidth() > 0);
  h3::CheckContractFits(*contract, h3::ReleasedConfig(), "F").IgnoreError();
  return 0;
}
