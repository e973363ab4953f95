#include "client/embedded/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files.h"

namespace plumbline::client {
namespace {

// Below the folder that the environment names, which may be one that others can enter.
constexpr char kSubfolder[] = "embedded";
constexpr char kCannotMake[] =
    "cannot make the folder for jobs and reports, which PLUMBLINE_STATE_DIR may name";
// Of struct sockaddr_un, without the NUL at its end.
constexpr size_t kMaxSocketPathBytes = 107;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status CheckPrivate(const std::string& folder, int descriptor) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) return FileError(folder, "cannot look at", errno);
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder,
                     ": belongs to another user; set PLUMBLINE_STATE_DIR to a folder of "
                     "your own"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: others can enter it (mode %03o); chmod 700 makes it private", folder,
                        info.st_mode & 0777));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StatePathFromEnvironment() {
  if (std::string path = Variable("PLUMBLINE_STATE_DIR"); !path.empty()) return path;
  if (const std::string path = Variable("XDG_STATE_HOME"); !path.empty()) {
    return absl::StrCat(path, "/plumbline");
  }
  if (const std::string path = Variable("HOME"); !path.empty()) {
    return absl::StrCat(path, "/.local/state/plumbline");
  }
  return absl::FailedPreconditionError(
      "there is no folder for jobs and reports: set PLUMBLINE_STATE_DIR, XDG_STATE_HOME or HOME, "
      "or name a server with --server");
}

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::absolute(path, error);
  if (!error) std::filesystem::create_directories(parent, error);
  if (error) return FileError(path, kCannotMake, error.value());
  const std::string folder = (parent / kSubfolder).lexically_normal().string();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError(folder, kCannotMake, errno);
  }
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return FileError(folder, "cannot open", errno);
  int lock = -1;
  absl::Status status = CheckPrivate(folder, descriptor);
  if (status.ok()) {
    lock = openat(descriptor, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0) status = FileError(absl::StrCat(folder, "/lock"), "cannot open", errno);
  }
  if (!status.ok()) {
    close(descriptor);
    return status;
  }
  return std::unique_ptr<StateFolder>(new StateFolder(folder, descriptor, lock));
}

StateFolder::~StateFolder() {
  close(lock_descriptor_);
  close(folder_descriptor_);
}

absl::StatusOr<bool> StateFolder::TryLock() {
  while (!is_locked_) {
    if (flock(lock_descriptor_, LOCK_EX | LOCK_NB) == 0) {
      is_locked_ = true;
    } else if (errno == EWOULDBLOCK) {
      return false;
    } else if (errno != EINTR) {
      return FileError(absl::StrCat(folder_, "/lock"), "cannot lock", errno);
    }
  }
  return true;
}

std::string StateFolder::socket_address() const {
  const std::string path = absl::StrCat(folder_, "/socket");
  if (path.size() <= kMaxSocketPathBytes) return absl::StrCat("unix:", path);
  return absl::StrCat("unix:/proc/self/fd/", folder_descriptor_, "/socket");
}

}  // namespace plumbline::client
