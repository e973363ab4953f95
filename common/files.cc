#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/private_file.h"
#include "common/status.h"

namespace plumbline {
namespace {

// True if the canonical path `path` is the canonical folder `root` or lies in it.
bool IsUnder(absl::string_view path, absl::string_view root) {
  if (root == "/") return true;
  return absl::StartsWith(path, root) && (path.size() == root.size() || path[root.size()] == '/');
}

// `path` with every link followed, or "" with errno set.
std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? std::string() : std::string(resolved);
}

absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return FileError(folder, "cannot open", errno);
  const int result = fsync(descriptor);
  const int error_number = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : FileError(folder, "cannot sync", error_number);
}

// The whole of a regular file, which is closed.
absl::StatusOr<std::string> ReadAndClose(const std::string& path, int descriptor,
                                         size_t max_bytes) {
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError(path, "cannot stat", errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  const auto too_large = [&path, max_bytes] {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": larger than the accepted ", max_bytes, " bytes"));
  };
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return too_large();

  std::string contents;
  char buffer[64 << 10];
  while (true) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(path, "cannot read", errno);
    if (count == 0) return contents;
    // Checked again, because the file may grow under the reader.
    if (static_cast<size_t>(count) > max_bytes - contents.size()) return too_large();
    contents.append(buffer, count);
  }
}

}  // namespace

absl::Status FileError(absl::string_view path, absl::string_view action, int error_number) {
  return absl::ErrnoToStatus(error_number, absl::StrCat(path, ": ", action));
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int descriptor, OpenForReading(path));
  return ReadAndClose(path, descriptor, max_bytes);
}

absl::StatusOr<PrivateFile> ReadPrivateFile(const std::string& path, size_t max_bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int descriptor, OpenForReading(path));
  absl::Cleanup closer = [descriptor] { close(descriptor); };
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError(path, "cannot stat", errno);
  if (S_ISREG(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": its mode ", absl::StrFormat("%04o", info.st_mode & 07777),
        " lets others than its owner write it; accepted: no writing by group and others, e.g. "
        "after `chmod 600 ",
        path, "`"));
  }
  std::move(closer).Cancel();
  PrivateFile file;
  file.others_may_read = (info.st_mode & S_IROTH) != 0;
  PLUMBLINE_ASSIGN_OR_RETURN(file.text, ReadAndClose(path, descriptor, max_bytes));
  return file;
}

absl::StatusOr<int> OpenEntry(const std::string& path) {
  constexpr absl::string_view kAccepted = "; accepted: a regular file";
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) {
    const int error_number = errno;
    struct stat info;
    // What open says of a link or of a socket says not what it is.
    if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, S_ISLNK(info.st_mode) ? ": is a symbolic link" : ": is no regular file",
          kAccepted));
    }
    return FileError(path, "cannot open", error_number);
  }
  struct stat info;
  const bool known = fstat(descriptor, &info) == 0;
  const int error_number = errno;
  if (known && S_ISREG(info.st_mode)) return descriptor;
  close(descriptor);
  if (!known) return FileError(path, "cannot stat", error_number);
  return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file", kAccepted));
}

absl::StatusOr<std::string> ReadEntry(const std::string& path, size_t max_bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int descriptor, OpenEntry(path));
  return ReadAndClose(path, descriptor, max_bytes);
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int descriptor)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_path_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  static std::atomic<int> counter{0};  // Two threads may write the same path at once.
  const std::string temporary_path =
      absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
  // O_TRUNC, not O_EXCL: a process that crashed may have left a file of this name.
  const int descriptor =
      open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return FileError(path, "cannot create", errno);
  return AtomicFile(path, temporary_path, descriptor);
}

absl::Status AtomicFile::WriteAt(size_t offset, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(path_, "cannot write", errno);
    bytes.remove_prefix(count);
    offset += count;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(descriptor_) != 0) return FileError(path_, "cannot sync", errno);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "cannot rename the temporary file to it", errno);
  }
  close(std::exchange(descriptor_, -1));
  return SyncFolderOf(path_);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  PLUMBLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PLUMBLINE_RETURN_IF_ERROR(file.WriteAt(
      0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(contents.data()), contents.size())));
  return file.Commit();
}

absl::StatusOr<std::string> ResolveUnderRoots(absl::string_view path,
                                              const std::vector<std::string>& roots) {
  const auto refuse = [path, &roots](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "path ", Quoted(path), " ", why, "; accepted: an existing path under ",
        roots.empty() ? "a configured root, of which there is none" : absl::StrJoin(roots, ", ")));
  };
  if (path.empty()) return refuse("is empty");
  if (absl::StrContains(path, absl::string_view("\0", 1))) return refuse("has a NUL byte");
  for (absl::string_view component : absl::StrSplit(path, '/')) {
    if (component == "..") return refuse("has a component \"..\"");
  }
  const bool absolute = path[0] == '/';
  bool named_a_root = false;
  bool leads_outside = false;
  for (const std::string& root : roots) {
    const std::string real_root = RealPath(root);
    if (real_root.empty()) continue;
    // An absolute path outside the roots is refused by its text alone, so that the answer does not
    // tell whether there is such a file.
    if (absolute && !IsUnder(path, real_root) && !IsUnder(path, root)) continue;
    named_a_root = true;
    const std::string real =
        RealPath(absolute ? std::string(path) : absl::StrCat(real_root, "/", path));
    if (real.empty()) continue;
    for (const std::string& any_root : roots) {
      const std::string real_any_root = RealPath(any_root);
      if (!real_any_root.empty() && IsUnder(real, real_any_root)) return real;
    }
    leads_outside = true;
  }
  if (leads_outside) return refuse("leads through a link out of the configured roots");
  return refuse(named_a_root ? "does not exist" : "is outside the configured roots");
}

}  // namespace plumbline
