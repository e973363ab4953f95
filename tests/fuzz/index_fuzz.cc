// Indexes of sharded checkpoints beside two shards.
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/safetensors.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/temporary_folder.h"

namespace plumbline {
namespace {

class Shards {
 public:
  Shards() {
    for (const char* const name : {"a", "b"}) {
      const std::string header =
          absl::StrCat(R"({"t.)", name, R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})");
      std::ofstream file(absl::StrCat(folder_.path(), "/", name, ".safetensors"), std::ios::binary);
      for (size_t i = 0; i < 8; ++i) file.put(static_cast<char>(header.size() >> (8 * i)));
      file << header << "1234";
    }
  }
  std::string index() const { return folder_.path() + "/m.safetensors.index.json"; }
  const std::string& folder() const { return folder_.path(); }

 private:
  const fuzz::TemporaryFolder folder_;
};

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  static const Shards shards;
  std::ofstream(shards.index(), std::ios::binary) << fuzz::Input(data, size).Rest();
  SafetensorsOptions options;
  options.limits.max_tensors = 1000;
  options.shard_roots = {shards.folder()};
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(shards.index(), options);
  if (!file.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(file.status()));
    return 0;
  }
  FUZZ_REQUIRE(!file->tensors().empty() && file->tensors().size() <= 2);
  for (const TensorInfo& tensor : file->tensors()) {
    FUZZ_REQUIRE(file->Find(tensor.name) == &tensor && file->Bytes(tensor).size() == 4);
  }
  return 0;
}
