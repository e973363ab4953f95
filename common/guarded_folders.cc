#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/files.h"

namespace plumbline {
namespace {

// O_NONBLOCK: opening a FIFO must not wait for its writer.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

struct Guard {
  std::string path;  // Canonical.
  int descriptor;    // Of the folder that was there when it was guarded; never closed.
};

absl::Mutex* GuardsMutex() {
  static absl::Mutex* const mutex = new absl::Mutex;
  return mutex;
}

std::vector<Guard>* Guards() {
  static auto* const guards = new std::vector<Guard>;
  return guards;
}

bool LiesIn(absl::string_view path, absl::string_view folder) {
  return path.size() > folder.size() && absl::StartsWith(path, folder) &&
         path[folder.size()] == '/';
}

// Of the innermost guarded folder that `path` lies in.
bool FindGuard(absl::string_view path, Guard* guard) {
  absl::MutexLock lock(GuardsMutex());
  bool found = false;
  for (const Guard& each : *Guards()) {
    if (!LiesIn(path, each.path) || (found && each.path.size() <= guard->path.size())) continue;
    *guard = each;
    found = true;
  }
  return found;
}

// open(2) of `path` below the guarded folder; -1 with errno, EXDEV if it leads out of it.
int OpenBeneath(const Guard& guard, const std::string& path) {
  const std::string relative = path.substr(guard.path.size() + 1);
  open_how how = {};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  while (true) {
    const long descriptor =
        syscall(SYS_openat2, guard.descriptor, relative.c_str(), &how, sizeof(how));
    // Somebody moved folders about at the same time.
    if (descriptor < 0 && errno == EAGAIN) continue;
    return static_cast<int>(descriptor);
  }
}

}  // namespace

void GuardFolders(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    char* const real = realpath(folder.c_str(), nullptr);
    if (real == nullptr) continue;
    const std::string path = real;
    std::free(real);  // NOLINT: of realpath
    if (path == "/") continue;
    const int descriptor = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) continue;
    absl::MutexLock lock(GuardsMutex());
    // The folder may be another one of the same name: the last one counts, and whoever opens
    // something beneath the first can still do so.
    Guards()->insert(Guards()->begin(), {path, descriptor});
  }
}

absl::StatusOr<int> OpenForReading(const std::string& path) {
  Guard guard;
  const bool guarded = FindGuard(path, &guard);
  const int descriptor = guarded ? OpenBeneath(guard, path) : open(path.c_str(), kFlags);
  if (descriptor >= 0) return descriptor;
  if (guarded && (errno == EXDEV || errno == ELOOP)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": leads through a link out of ", guard.path));
  }
  return FileError(path, "cannot open", errno);
}

}  // namespace plumbline
