#ifndef PLUMBLINE_WORKER_CHECKPOINT_SHARD_FILE_H_
#define PLUMBLINE_WORKER_CHECKPOINT_SHARD_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/safetensors_header.h"

namespace plumbline::checkpoint {

// A weight file that is read once, from its beginning to its end, and may be damaged. It is read,
// not mapped: a file that shrinks meanwhile, or a disk that fails, is an error here and no signal.
// One thread at a time.
class ShardFile {
 public:
  // Reads the header's bytes. NOT_FOUND or INVALID_ARGUMENT for what is no file.
  static absl::StatusOr<ShardFile> Open(const std::string& path);

  ShardFile(ShardFile&& other) noexcept;
  ShardFile& operator=(ShardFile&&) = delete;
  ~ShardFile();

  int64_t size_bytes() const { return size_bytes_; }
  // The header's length and its text, as far as the file has them.
  const std::string& beginning() const { return beginning_; }
  // The file ends within its header.
  bool ends_in_header() const { return ends_in_header_; }
  // INVALID_ARGUMENT says what is wrong with it. How many data follow is not held against it.
  const absl::StatusOr<SafetensorsHeader>& header() const { return header_; }

  // Bytes [offset, offset + to.size()) of the file, all of them. DATA_LOSS where they are not to be
  // had; the message has no path.
  absl::Status Read(int64_t offset, absl::Span<uint8_t> to) const;

 private:
  ShardFile(int descriptor, int64_t size_bytes)
      : descriptor_(descriptor), size_bytes_(size_bytes), header_(absl::UnknownError("")) {}

  int descriptor_;  // Owned; -1 once moved from.
  int64_t size_bytes_;
  std::string beginning_;
  bool ends_in_header_ = false;
  absl::StatusOr<SafetensorsHeader> header_;
};

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_SHARD_FILE_H_
