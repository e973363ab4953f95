#include "worker/plugin/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/printable.h"
#include "common/status.h"
#include "kernels/plugin/library.h"

extern char** environ;

namespace plumbline::worker {
namespace {

constexpr char kProbeWord[] = "--probe-plugin-object";
constexpr int kAnswerDescriptor = 3;
constexpr size_t kMaxAnswerBytes = 4096;
constexpr absl::string_view kGood = "good\n";
constexpr absl::string_view kBad = "bad\n";
// How often the process is looked at while it says nothing.
constexpr int kPollMs = 20;

// Both ends of a pipe, closed with it.
class Pipe {
 public:
  static absl::StatusOr<Pipe> Make() {
    Pipe pipe;
    if (pipe2(pipe.ends_, O_CLOEXEC) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
    }
    return pipe;
  }
  Pipe(Pipe&& other) noexcept {
    std::copy(other.ends_, other.ends_ + 2, ends_);
    other.ends_[0] = other.ends_[1] = -1;
  }
  ~Pipe() {
    for (int& end : ends_) Close(&end);
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseWriter() { Close(&ends_[1]); }

 private:
  Pipe() = default;
  static void Close(int* end) {
    if (*end >= 0) close(*end);
    *end = -1;
  }

  int ends_[2] = {-1, -1};
};

absl::StatusOr<pid_t> Spawn(const std::string& program, const std::string& path, int answer) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int standard : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, answer, kAnswerDescriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A group of its own, so that what it may start ends with it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const char* const arguments[] = {program.c_str(), kProbeWord, path.c_str(), nullptr};
  pid_t process = -1;
  const int error = posix_spawn(&process, program.c_str(), &actions, &attributes,
                                const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot start a process to probe it: ", std::strerror(error)));
  }
  return process;
}

// What the process said until it ended or the limit was over.
ProbeOutcome Await(pid_t process, int reader, const ProbeOptions& options) {
  ProbeOutcome outcome;
  const absl::Time deadline = options.clock->Now() + options.limit;
  while (!outcome.ended && options.clock->Now() < deadline) {
    pollfd watched = {reader, POLLIN, 0};
    if (poll(&watched, 1, kPollMs) > 0) {
      char buffer[512];
      const ssize_t bytes = read(reader, buffer, sizeof(buffer));
      if (bytes > 0 && outcome.answer.size() < kMaxAnswerBytes) {
        outcome.answer.append(buffer, static_cast<size_t>(bytes));
        continue;
      }
      // Nothing more comes: wait for the process itself, a moment at a time.
      if (bytes == 0) poll(nullptr, 0, kPollMs);
    }
    outcome.ended = waitpid(process, &outcome.wait_status, WNOHANG) == process;
  }
  kill(-process, SIGKILL);
  if (!outcome.ended) waitpid(process, &outcome.wait_status, 0);
  // What it said last.
  fcntl(reader, F_SETFL, O_NONBLOCK);
  char buffer[kMaxAnswerBytes];
  const ssize_t bytes = read(reader, buffer, sizeof(buffer));
  if (bytes > 0) outcome.answer.append(buffer, static_cast<size_t>(bytes));
  return outcome;
}

void Say(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = write(kAnswerDescriptor, text.data(), text.size());
    if (bytes <= 0) return;
    text.remove_prefix(static_cast<size_t>(bytes));
  }
}

}  // namespace

absl::Status ProbePlugin(const std::string& path, const ProbeOptions& options) {
  PLUMBLINE_ASSIGN_OR_RETURN(Pipe answer, Pipe::Make());
  PLUMBLINE_ASSIGN_OR_RETURN(const pid_t process, Spawn(options.program, path, answer.writer()));
  answer.CloseWriter();
  return JudgeProbe(Await(process, answer.reader(), options), options.limit);
}

absl::Status JudgeProbe(const ProbeOutcome& outcome, absl::Duration limit) {
  if (!outcome.ended) {
    return absl::InvalidArgumentError(
        absl::StrCat("hangs: it was not loaded within ", absl::FormatDuration(limit)));
  }
  if (WIFSIGNALED(outcome.wait_status)) {
    const int signal = WTERMSIG(outcome.wait_status);
    const char* const name = sigdescr_np(signal);
    return absl::InvalidArgumentError(absl::StrCat("crashes while it is loaded: signal ", signal,
                                                   ", ", name == nullptr ? "unknown" : name));
  }
  absl::string_view said = outcome.answer;
  if (absl::ConsumePrefix(&said, kBad)) {
    // It becomes a string of the API, in which no other bytes may be.
    return absl::InvalidArgumentError(Printable(said.substr(0, kMaxAnswerBytes)));
  }
  if (said == kGood && outcome.wait_status == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "ends the process while it is loaded, with status ", WEXITSTATUS(outcome.wait_status)));
}

std::optional<int> RunProbe(int argc, const char* const* argv) {
  if (argc != 3 || std::strcmp(argv[1], kProbeWord) != 0) return std::nullopt;
  // A crash leaves no file behind, and is nobody's to handle.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  for (int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) signal(crash, SIG_DFL);
  const absl::StatusOr<std::shared_ptr<const plugin::Library>> library =
      plugin::Library::Load(argv[2], "");
  if (library.ok()) {
    Say(kGood);
  } else {
    Say(absl::StrCat(kBad, library.status().message().substr(0, kMaxAnswerBytes / 2)));
  }
  // Without the object's own destructors.
  _exit(library.ok() ? 0 : 1);
}

}  // namespace plumbline::worker
