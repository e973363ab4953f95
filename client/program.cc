#include "client/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;

// Descriptors that read what the program writes.
struct Readers {
  int out = -1;
  int error = -1;
};

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command, int out, int error) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, handled;
  sigemptyset(&none);
  sigemptyset(&handled);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&handled, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &handled);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t process = -1;
  const int failed =
      posix_spawnp(&process, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return process;
  const std::string message = absl::StrCat("cannot run ", Quoted(command[0]));
  if (failed == ENOENT) return absl::NotFoundError(absl::StrCat(message, ": it is not installed"));
  return absl::ErrnoToStatus(failed, message);
}

// Appends what is there to `text`; closes `reader` at its end.
absl::Status ReadSome(int* reader, std::string* text) {
  char buffer[4096];
  const ssize_t bytes = read(*reader, buffer, sizeof(buffer));
  if (bytes < 0 && errno == EINTR) return absl::OkStatus();
  if (bytes <= 0) {
    close(*reader);
    *reader = -1;
    return absl::OkStatus();
  }
  text->append(buffer, static_cast<size_t>(bytes));
  if (text->size() > kMostBytes) return absl::ResourceExhaustedError("it writes more than 16 MiB");
  return absl::OkStatus();
}

absl::Status ReadAll(Readers* readers, ProgramResult* result) {
  while (readers->out >= 0 || readers->error >= 0) {
    pollfd watched[] = {{readers->out, POLLIN, 0}, {readers->error, POLLIN, 0}};
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (watched[0].revents != 0) {
      PLUMBLINE_RETURN_IF_ERROR(ReadSome(&readers->out, &result->out));
    }
    if (watched[1].revents != 0) {
      PLUMBLINE_RETURN_IF_ERROR(ReadSome(&readers->error, &result->error));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& command) {
  int out[2], error[2];
  if (pipe2(out, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  if (pipe2(error, O_CLOEXEC) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "cannot make a pipe");
    for (const int end : out) close(end);
    return status;
  }
  Readers readers{out[0], error[0]};
  const absl::Cleanup close_readers = [&readers] {
    for (const int end : {readers.out, readers.error}) {
      if (end >= 0) close(end);
    }
  };
  const absl::StatusOr<pid_t> process = Spawn(command, out[1], error[1]);
  close(out[1]);
  close(error[1]);
  if (!process.ok()) return process.status();
  ProgramResult result;
  const absl::Status read = ReadAll(&readers, &result);
  if (!read.ok()) kill(*process, SIGKILL);
  int wait_status = 0;
  while (waitpid(*process, &wait_status, 0) < 0 && errno == EINTR) {
  }
  PLUMBLINE_RETURN_IF_ERROR(AnnotateStatus(read, command[0]));
  result.exit_status =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  return result;
}

}  // namespace plumbline::client
