#ifndef PLUMBLINE_COMMON_FILES_H_
#define PLUMBLINE_COMMON_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plumbline {

// The status for a failed system call on `path`: "PATH: ACTION: <text of error_number>".
absl::Status FileError(absl::string_view path, absl::string_view action, int error_number);

// The whole of a regular file. INVALID_ARGUMENT if it holds more than `max_bytes` or is no regular
// file, NOT_FOUND if there is none.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// A descriptor of the regular file that `path` itself names, opened for reading as OpenForReading
// does; the caller closes it. Of a folder that somebody else made, e.g. an evidence bundle:
// INVALID_ARGUMENT for a link, wherever it leads, a FIFO, a folder, a device; NOT_FOUND if there is
// none. Links on the way to the folder are followed.
absl::StatusOr<int> OpenEntry(const std::string& path);

// ReadFile of what OpenEntry opens.
absl::StatusOr<std::string> ReadEntry(const std::string& path, size_t max_bytes);

// From now on no file of this process is opened below one of `folders` through a link that leads
// out of that folder, whoever opens it by whatever path, and whatever was put there since the path
// was checked: the kernel resolves the path beneath the folder as it is now. Absolute links lead
// out. Folders that are not there, and "/", guard nothing. Any thread; what was guarded stays so.
void GuardFolders(const std::vector<std::string>& folders);

// A descriptor of `path`, opened for reading, close-on-exec and without waiting for the writer of a
// FIFO; the caller closes it. NOT_FOUND if there is none; INVALID_ARGUMENT for a link out of a
// guarded folder. ReadFile and MappedFile open like this.
absl::StatusOr<int> OpenForReading(const std::string& path);

// A file that appears under its name complete or not at all. It is written as PATH.tmp.PID.N in the
// same folder; Commit makes it durable and renames it; without Commit the destructor removes it.
// One thread at a time.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Writes all of `bytes` at `offset` bytes from the start.
  absl::Status WriteAt(size_t offset, absl::Span<const uint8_t> bytes);
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int descriptor);

  std::string path_;
  std::string temporary_path_;
  int descriptor_;  // Owned; -1 once committed or moved from.
};

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents);

// The canonical path of the existing file or folder `path`, which must lie in one of `roots` after
// every symbolic link is followed. A relative path is looked for in each root in turn. A path from
// a request becomes a path to open only here. INVALID_ARGUMENT, naming the path and the roots, for
// a component "..", an absolute path in no root, a link that leads out of the roots, and what is
// not there. Whoever can write inside a root can still change it between this call and the opening,
// unless the root is guarded.
absl::StatusOr<std::string> ResolveUnderRoots(absl::string_view path,
                                              const std::vector<std::string>& roots);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_FILES_H_
