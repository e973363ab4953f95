#include "client/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/time/time.h"
#include "client/exit_status.h"
#include "common/clock.h"

namespace plumbline::client {
namespace {

// Where the signal handler, which may do next to nothing, tells a thread.
std::atomic<int> signal_pipe{-1};
std::atomic<bool> signal_seen{false};

// Not _exit: within a call of a plug-in that is taken for the plug-in's own.
[[noreturn]] void EndAtOnce() {
  while (true) syscall(SYS_exit_group, kExitInterrupted);
}

void HandleSignal(int) {
  if (signal_seen.exchange(true)) EndAtOnce();
  const int saved_errno = errno;
  const char byte = 'i';
  if (write(signal_pipe.load(), &byte, 1) != 1) EndAtOnce();
  errno = saved_errno;
}

}  // namespace

bool Interrupt::IsRaised() const {
  absl::MutexLock lock(&mutex_);
  return raised_;
}

void Interrupt::Raise() {
  absl::MutexLock lock(&mutex_);
  raised_ = true;
  if (reaction_) reaction_();
}

bool Interrupt::WaitFor(int milliseconds) const {
  absl::MutexLock lock(&mutex_);
  Clock* const clock = SteadyClock();
  return clock->AwaitUntil(&mutex_, absl::Condition(&raised_),
                           clock->Now() + absl::Milliseconds(milliseconds));
}

Interrupt::Reaction::Reaction(Interrupt* interrupt, std::function<void()> reaction)
    : interrupt_(interrupt) {
  absl::MutexLock lock(&interrupt_->mutex_);
  interrupt_->reaction_ = std::move(reaction);
  if (interrupt_->raised_) interrupt_->reaction_();
}

Interrupt::Reaction::~Reaction() {
  absl::MutexLock lock(&interrupt_->mutex_);
  interrupt_->reaction_ = nullptr;
}

SignalWatch::SignalWatch(Interrupt* interrupt) {
  // Without a pipe Ctrl-C keeps its usual effect.
  if (pipe2(pipe_, O_CLOEXEC) != 0) {
    pipe_[0] = pipe_[1] = -1;
    return;
  }
  signal_pipe = pipe_[1];
  thread_ = std::thread([interrupt, read_end = pipe_[0]] {
    char byte = 0;
    ssize_t count;
    do {
      count = read(read_end, &byte, 1);
    } while (count < 0 && errno == EINTR);
    if (count == 1) interrupt->Raise();
  });
  struct sigaction action = {};
  action.sa_handler = &HandleSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

SignalWatch::~SignalWatch() {
  if (pipe_[0] < 0) return;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal_pipe = -1;
  close(pipe_[1]);  // The thread reads the end of the pipe, if it still reads.
  thread_.join();
  close(pipe_[0]);
}

}  // namespace plumbline::client
