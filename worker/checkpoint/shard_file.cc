#include "worker/checkpoint/shard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline::checkpoint {
namespace {

constexpr int64_t kLengthBytes = 8;

}  // namespace

absl::StatusOr<ShardFile> ShardFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileError(path, "cannot open", errno);
  ShardFile file(descriptor, 0);
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError(path, "cannot stat", errno);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a regular file");
  file.size_bytes_ = info.st_size;
  // Only for speed.
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);

  std::string& beginning = file.beginning_;
  const auto read_up_to = [&](int64_t end) -> absl::Status {
    const int64_t from = static_cast<int64_t>(beginning.size());
    const int64_t to = std::min(end, file.size_bytes_);
    if (to <= from) return absl::OkStatus();
    beginning.resize(to);
    return file.Read(from, {reinterpret_cast<uint8_t*>(beginning.data()) + from,
                            static_cast<size_t>(to - from)});
  };
  PLUMBLINE_RETURN_IF_ERROR(read_up_to(kLengthBytes));
  uint64_t length = 0;
  for (size_t i = beginning.size(); i-- > 0;) {
    length = length << 8 | static_cast<uint8_t>(beginning[i]);
  }
  const SafetensorsLimits limits;
  if (static_cast<int64_t>(beginning.size()) < kLengthBytes) {
    file.ends_in_header_ = true;
  } else if (length <= limits.max_header_bytes) {
    PLUMBLINE_RETURN_IF_ERROR(read_up_to(kLengthBytes + static_cast<int64_t>(length)));
    file.ends_in_header_ = beginning.size() < kLengthBytes + length;
  }
  file.header_ = ParseSafetensorsHeaderAlone(
      {reinterpret_cast<const uint8_t*>(beginning.data()), beginning.size()}, "header", limits);
  return file;
}

ShardFile::ShardFile(ShardFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_),
      beginning_(std::move(other.beginning_)),
      ends_in_header_(other.ends_in_header_),
      header_(std::move(other.header_)) {}

ShardFile::~ShardFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status ShardFile::Read(int64_t offset, absl::Span<uint8_t> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor_, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::DataLossError(absl::StrCat("cannot be read at byte ", offset, ": ",
                                              got < 0 ? strerror(errno) : "the file ends there"));
    }
    offset += got;
    to.remove_prefix(got);
  }
  return absl::OkStatus();
}

}  // namespace plumbline::checkpoint
