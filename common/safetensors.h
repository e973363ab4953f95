#ifndef PLUMBLINE_COMMON_SAFETENSORS_H_
#define PLUMBLINE_COMMON_SAFETENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/mapped_file.h"
#include "common/safetensors_header.h"

namespace plumbline {

struct SafetensorsOptions {
  SafetensorsLimits limits;
  // Where the shards that an index names may lie once symbolic links are followed; empty: anywhere.
  // `path` itself has been resolved by the caller.
  std::vector<std::string> shard_roots;
};

// The tensors of one safetensors file, or of all shards that an index (NAME.safetensors.index.json)
// names, as one view. The files stay mapped as long as this object lives (see MappedFile for what
// happens to a file that shrinks). Immutable: any thread may read.
class SafetensorsFile {
 public:
  // Reads and checks every header, no data. NOT_FOUND if `path` is not there; INVALID_ARGUMENT,
  // naming the file and the tensor, for whatever ParseSafetensorsHeader refuses and, with an index:
  // a shard that is missing, that lies elsewhere than beside the index, or whose tensors are not
  // exactly those that `weight_map` says it holds, and a tensor in two shards.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path,
                                              const SafetensorsOptions& options = {});

  // Several files as one view, whatever an index beside them says; `path` names them in messages.
  // INVALID_ARGUMENT for a tensor in two of them.
  static absl::StatusOr<SafetensorsFile> OpenAll(const std::string& path,
                                                 const std::vector<std::string>& files,
                                                 const SafetensorsOptions& options = {});

  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  // In the order of the files' bytes; shards in the order of their names.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  // Null if there is no such tensor.
  const TensorInfo* Find(absl::string_view name) const;

  // The data of a tensor of this object. They may begin at any address, aligned or not.
  absl::Span<const uint8_t> Bytes(const TensorInfo& tensor) const;

  // The same by name; NOT_FOUND names the tensor and the file.
  absl::StatusOr<absl::Span<const uint8_t>> Bytes(absl::string_view name) const;

  // `__metadata__` of all shards; of a key in several, the first shard's.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // What was opened, for messages.
  const std::string& path() const { return path_; }

 private:
  struct Shard {
    MappedFile file;
    size_t data_offset;
  };

  explicit SafetensorsFile(std::string path) : path_(std::move(path)) {}

  // Opens one file and adds its tensors.
  absl::Status AddShard(const std::string& path, const SafetensorsLimits& limits);
  absl::Status AddShardsOfIndex(const SafetensorsOptions& options);

  std::string path_;
  std::vector<Shard> shards_;
  std::vector<TensorInfo> tensors_;
  absl::flat_hash_map<std::string, size_t> index_by_name_;  // Into tensors_.
  std::map<std::string, std::string> metadata_;
};

// Tensor names by the shard that holds them, as an index says; both sorted.
using WeightMap = std::map<std::string, std::vector<std::string>>;

// Reads the index at `index_path`. INVALID_ARGUMENT as SafetensorsFile::Open's.
absl::StatusOr<WeightMap> ReadWeightMap(const std::string& index_path,
                                        const SafetensorsLimits& limits = {});

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_SAFETENSORS_H_
