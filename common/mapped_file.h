#ifndef PLUMBLINE_COMMON_MAPPED_FILE_H_
#define PLUMBLINE_COMMON_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plumbline {

// The bytes of a regular file, mapped read-only; owns the mapping. The size is that at opening: a
// file that grows later is seen as it was, but one that is made shorter turns the bytes beyond its
// new end into a SIGBUS when they are read. Files are therefore mapped only where nobody shortens
// them in place: checkpoints under the operator's roots, and uploads and captures, which appear
// under their names complete (AtomicFile) and are replaced by renaming, which leaves a mapping of
// the old file whole. Any thread may read.
class MappedFile {
 public:
  // NOT_FOUND if there is no such file; INVALID_ARGUMENT if it is not a regular file.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  absl::Span<const uint8_t> bytes_;  // Empty for an empty file, which cannot be mapped.
};

// Gives the memory of mapped bytes back to the system, so that reading a long file from end to end
// takes no more than what is read at a time. They stay valid: the next use reads them from the file
// again. `bytes` must lie in a MappedFile.
void ForgetMappedBytes(absl::Span<const uint8_t> bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_MAPPED_FILE_H_
