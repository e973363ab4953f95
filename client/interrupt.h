#ifndef PLUMBLINE_CLIENT_INTERRUPT_H_
#define PLUMBLINE_CLIENT_INTERRUPT_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::client {

// Ctrl-C, and SIGTERM, as something to react to instead of an end at once. Any thread may call any
// method.
class Interrupt {
 public:
  Interrupt() = default;
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool IsRaised() const;
  // Sets the flag and calls the present reaction. It stays raised.
  void Raise();
  // True at once when raised, false after `milliseconds` without.
  bool WaitFor(int milliseconds) const;

  // While it exists, Raise calls `reaction`; if it was raised already, this does. One at a time.
  class Reaction {
   public:
    Reaction(Interrupt* interrupt, std::function<void()> reaction);
    ~Reaction();
    Reaction(const Reaction&) = delete;
    Reaction& operator=(const Reaction&) = delete;

   private:
    Interrupt* const interrupt_;
  };

 private:
  mutable absl::Mutex mutex_;
  bool raised_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> reaction_ ABSL_GUARDED_BY(mutex_);
};

// While it exists, the first SIGINT or SIGTERM raises `interrupt`, and the second ends the process
// with status 130. Only one may exist, made before there are other threads.
class SignalWatch {
 public:
  explicit SignalWatch(Interrupt* interrupt);
  ~SignalWatch();

 private:
  int pipe_[2];
  std::thread thread_;  // Reads the pipe that the signal handler writes to.
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_INTERRUPT_H_
