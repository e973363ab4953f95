#ifndef PLUMBLINE_WORKER_PLUGIN_CRASH_REPORTER_H_
#define PLUMBLINE_WORKER_PLUGIN_CRASH_REPORTER_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace plumbline::worker {

struct CrashReporterOptions {
  // Tells whoever must know what happened. Called at most once, on the reporter's thread, while the
  // thread that crashed stands still in its signal handler and may hold any lock of the C library:
  // it may never return.
  std::function<void(const absl::Status&)> report;
  // Then the process ends, however far that came.
  absl::Duration report_limit = absl::Seconds(10);
  // A call of a plug-in that takes longer than this hangs.
  absl::Duration call_limit = absl::Minutes(10);
  // How the process ends: by the signal that it got, or with this exit status where it is not
  // negative, after as long as `report_limit` for it to end by itself.
  int exit_status = -1;
  Clock* clock = SteadyClock();
};

// What becomes of a plug-in that crashes in a call, hangs in it, or ends the process: the process
// is lost, but not before it said whose fault that is. Where no call of a plug-in runs, signals do
// what they did before.
//
// It takes over the handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT; one in a process.
class CrashReporter {
 public:
  static std::unique_ptr<CrashReporter> Start(CrashReporterOptions options);
  ~CrashReporter();  // Gives the handlers back.
  CrashReporter(const CrashReporter&) = delete;
  CrashReporter& operator=(const CrashReporter&) = delete;

 private:
  explicit CrashReporter(CrashReporterOptions options);
  void Watch();
  [[noreturn]] void ReportAndEnd(int signal);

  const CrashReporterOptions options_;
  std::thread thread_;
};

// Gives the calling thread a stack for signal handlers, so that an overflow of its own is reported
// too. For the threads that call plug-ins.
void UseAlternateStack();

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_PLUGIN_CRASH_REPORTER_H_
