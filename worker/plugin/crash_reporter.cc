#include "worker/plugin/crash_reporter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "kernels/plugin/current_call.h"
#include "kernels/plugin/fault.h"

namespace plumbline::worker {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kCount = sizeof(kSignals) / sizeof(kSignals[0]);
constexpr int kPollMs = 250;
constexpr size_t kStackBytes = 64 << 10;
// What comes through the pipe: the number of a signal, or one of these.
constexpr unsigned char kEnd = 255;
constexpr unsigned char kExited = 254;

int pipe_ends[2] = {-1, -1};
struct sigaction previous[kCount];
std::atomic<bool> active{false};
std::atomic<bool> crashed{false};
// Of the reporter: a child that a plug-in makes ends as it likes.
pid_t owner = 0;

[[noreturn]] void StandStill() {
  while (true) pause();
}

// Hands the process over to the reporter. The first one counts.
void Tell(unsigned char what) {
  if (crashed.exchange(true)) return;
  while (write(pipe_ends[1], &what, 1) < 0 && errno == EINTR) {
  }
}

void OnSignal(int signal, siginfo_t*, void*) {
  if (active && plugin::RunningCall() != nullptr) {
    Tell(static_cast<unsigned char>(signal));
    StandStill();
  }
  // As if there were no handler: what was wrong happens again when this returns.
  for (int i = 0; i < kCount; ++i) {
    if (kSignals[i] == signal) sigaction(signal, &previous[i], nullptr);
  }
  if (signal == SIGABRT) raise(signal);
}

// A plug-in that ends the process.
void OnExit() {
  if (!active || crashed || plugin::RunningCall() == nullptr || getpid() != owner) return;
  Tell(kExited);
  StandStill();
}

std::string TextOf(int what, absl::Duration call_limit) {
  if (what == kExited) return "ended the process";
  if (what == 0) return absl::StrCat("did not return within ", absl::FormatDuration(call_limit));
  return absl::StrCat("crashed with signal ", what, " (", strsignal(what), ")");
}

// What an end that runs no handlers of atexit would hide: a process that a plug-in ended would look
// like one that is done. Plug-ins, and whatever else asks the dynamic linker, find these before the
// C library's own.
[[noreturn]] void EndAtOnce(int status) {
  OnExit();
  while (true) syscall(SYS_exit_group, status);
}

}  // namespace

std::unique_ptr<CrashReporter> CrashReporter::Start(CrashReporterOptions options) {
  return std::unique_ptr<CrashReporter>(new CrashReporter(std::move(options)));
}

CrashReporter::CrashReporter(CrashReporterOptions options) : options_(std::move(options)) {
  static const bool registered = std::atexit(&OnExit) == 0 && std::at_quick_exit(&OnExit) == 0;
  if (!registered || pipe2(pipe_ends, O_CLOEXEC) != 0) {
    Log(LogLevel::kError, "crashes of plug-ins will not be reported", {});
    return;
  }
  for (int i = 0; i < kCount; ++i) {
    struct sigaction action = {};
    action.sa_sigaction = &OnSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, &previous[i]);
  }
  owner = getpid();
  active = true;
  thread_ = std::thread([this] { Watch(); });
}

CrashReporter::~CrashReporter() {
  if (!thread_.joinable()) return;
  Tell(kEnd);
  thread_.join();
  active = false;
  for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &previous[i], nullptr);
  for (int& end : pipe_ends) {
    close(end);
    end = -1;
  }
  crashed = false;
}

void CrashReporter::Watch() {
  int64_t call = -1;
  absl::Time call_deadline = absl::InfiniteFuture();
  while (true) {
    pollfd watched = {pipe_ends[0], POLLIN, 0};
    if (poll(&watched, 1, kPollMs) > 0) {
      unsigned char what = 0;
      if (read(pipe_ends[0], &what, 1) != 1) continue;
      if (what == kEnd) return;
      ReportAndEnd(what);
    }
    if (plugin::RunningCall() == nullptr) {
      call = -1;
    } else if (const int64_t running = plugin::CallsBegun(); running != call) {
      call = running;
      call_deadline = options_.clock->Now() + options_.call_limit;
    } else if (options_.clock->Now() >= call_deadline) {
      crashed = true;
      ReportAndEnd(0);
    }
  }
}

void CrashReporter::ReportAndEnd(int what) {
  // The plug-in may have broken whatever reporting needs.
  std::thread([this, what] {
    const absl::Time deadline = options_.clock->Now() + options_.report_limit;
    while (options_.clock->Now() < deadline) poll(nullptr, 0, kPollMs);
    if (options_.exit_status >= 0) _exit(options_.exit_status);
    const int signal = what > 0 && what < kExited ? what : SIGABRT;
    ::signal(signal, SIG_DFL);
    kill(getpid(), signal);
    _exit(128 + signal);
  }).detach();
  const plugin::CallNote* const note = plugin::RunningCall();
  const std::string where =
      note == nullptr      ? "in a call"
      : note->node[0] == 0 ? "while it was loaded"
                           : absl::StrCat("in its call for ", note->node, ", ", note->direction);
  const absl::Status fault = plugin::Fault(
      note == nullptr ? "plugin" : note->implementation,
      absl::StrCat(TextOf(what, options_.call_limit), " ", where), plugin::kCrashedReason);
  Log(LogLevel::kError, "a plug-in broke this process", {{"error", fault.ToString()}});
  options_.report(fault);
  if (options_.exit_status >= 0) StandStill();
  const int signal = what > 0 && what < kExited ? what : SIGABRT;
  ::signal(signal, SIG_DFL);
  kill(getpid(), signal);
  StandStill();
}

void UseAlternateStack() {
  struct Stack {
    Stack() {
      stack_t stack = {};
      stack.ss_sp = memory.get();
      stack.ss_size = kStackBytes;
      sigaltstack(&stack, nullptr);
    }
    ~Stack() {
      stack_t stack = {};
      stack.ss_flags = SS_DISABLE;
      sigaltstack(&stack, nullptr);
    }
    const std::unique_ptr<char[]> memory = std::make_unique<char[]>(kStackBytes);
  };
  thread_local const Stack stack;
  (void)stack;
}

}  // namespace plumbline::worker

extern "C" {

[[noreturn]] void _exit(int status) { plumbline::worker::EndAtOnce(status); }
[[noreturn]] void _Exit(int status) noexcept { plumbline::worker::EndAtOnce(status); }

}  // extern "C"
