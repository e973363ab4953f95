#include "common/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int descriptor, OpenForReading(path));
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError(path, "cannot stat", errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  const size_t size = info.st_size;
  if (size == 0) return MappedFile(absl::Span<const uint8_t>());
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return FileError(path, "cannot map", errno);
  return MappedFile(absl::MakeConstSpan(static_cast<const uint8_t*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

void ForgetMappedBytes(absl::Span<const uint8_t> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // Pages that are shared with other bytes stay.
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  // Advice that is not taken costs memory alone.
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace plumbline
