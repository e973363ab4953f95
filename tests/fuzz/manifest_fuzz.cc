// Manifests of checkpoints, and checkpoints held against them.
#include <nlohmann/json.hpp>
#include <string>

#include "common/evidence/canonical_json.h"
#include "common/json.h"
#include "common/sha256.h"
#include "tests/fuzz/input.h"
#include "worker/checkpoint/manifest.h"

namespace plumbline {
namespace {

// A digest that is right is not found by chance.
std::string Sealed(absl::string_view text) {
  absl::StatusOr<nlohmann::json> value = ParseJson(text, "F");
  if (!value.ok() || !value->is_object()) return std::string(text);
  value->erase("sha256");
  (*value)["sha256"] = Sha256Hex(CanonicalJson(*value));
  return value->dump();
}

checkpoint::Scan SomeScan() {
  checkpoint::Scan scan;
  scan.layout = v1::CHECKPOINT_LAYOUT_DIFFUSERS;
  v1::CheckpointReport::File& file = scan.files.emplace_back();
  file.set_path("f");
  file.set_size_bytes(8);
  file.set_sha256("0");
  checkpoint::ScannedTensor& tensor = scan.tensors.emplace_back();
  tensor.name = "t";
  tensor.file = "f";
  tensor.shape = {2};
  tensor.figures.sha256 = "1";
  tensor.figures.norm = 1;
  tensor.figures.part_norms = {1, 1};
  return scan;
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const absl::string_view text = fuzz::Input(data, size).Rest();
  checkpoint::ReadManifest(text, "F").IgnoreError();
  const auto manifest = checkpoint::ReadManifest(Sealed(text), "F");
  if (!manifest.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(manifest.status()));
    return 0;
  }
  checkpoint::Scan scan = SomeScan();
  checkpoint::JudgeByManifest(*manifest, &scan);
  // What was found can be sent.
  for (const v1::CheckpointFinding& finding : scan.findings) {
    v1::CheckpointFinding again;
    FUZZ_REQUIRE(again.ParseFromString(finding.SerializeAsString()));
  }
  return 0;
}
