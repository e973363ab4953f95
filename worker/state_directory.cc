#include "worker/state_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/in_use.h"

namespace plumbline::worker {
namespace {

constexpr size_t kMaxIdCharacters = 63;

bool IsWorkerId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxIdCharacters &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError(path, "cannot make the folder", error.value());
  if (chmod(path.c_str(), 0700) != 0) return FileError(path, "cannot protect the folder", errno);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateDirectory>> StateDirectory::Open(const std::string& path,
                                                                     IdSource* ids) {
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder(path));
  const std::string lock_path = path + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return FileError(lock_path, "cannot open", errno);
  std::unique_ptr<StateDirectory> state(new StateDirectory(path, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          path, ": another worker uses this state folder; each needs its own")),
                      kInUseReason);
  }
  PLUMBLINE_RETURN_IF_ERROR(state->ReadOrMakeId(ids));
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder(state->cache_folder()));
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder(state->steps_folder()));
  return state;
}

StateDirectory::~StateDirectory() { close(lock_); }

absl::Status StateDirectory::ReadOrMakeId(IdSource* ids) {
  const std::string path = path_ + "/worker-id";
  absl::StatusOr<std::string> text = ReadFile(path, 2 * kMaxIdCharacters);
  if (text.ok()) {
    worker_id_ = std::string(absl::StripAsciiWhitespace(*text));
    if (IsWorkerId(worker_id_)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", Quoted(worker_id_),
                                                   " is no worker id: 1 to ", kMaxIdCharacters,
                                                   " characters of a-z, 0-9 and -"));
  }
  if (!absl::IsNotFound(text.status())) return text.status();
  worker_id_ = ids->NewId();
  return WriteFileAtomically(path, absl::StrCat(worker_id_, "\n"));
}

absl::StatusOr<std::string> StateDirectory::NewTaskFolder() {
  const std::string path = path_ + "/task";
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FileError(path, "cannot empty the folder", error.value());
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder(path));
  return path;
}

}  // namespace plumbline::worker
