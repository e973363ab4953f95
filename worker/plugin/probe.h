#ifndef PLUMBLINE_WORKER_PLUGIN_PROBE_H_
#define PLUMBLINE_WORKER_PLUGIN_PROBE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace plumbline::worker {

struct ProbeOptions {
  // A program whose main() begins with RunProbe(): this one's own, unless a test has another.
  std::string program = "/proc/self/exe";
  // How long loading an object may take.
  absl::Duration limit = absl::Seconds(20);
  Clock* clock = SteadyClock();
};

// What became of the process in which an object was loaded.
struct ProbeOutcome {
  std::string answer;   // What it wrote: the object may have written it as well as RunProbe().
  bool ended = false;   // By itself, within the limit.
  int wait_status = 0;  // As waitpid() gives it.
};

// What `outcome` says of the object: OK, or INVALID_ARGUMENT in printable ASCII, whatever the
// answer was.
absl::Status JudgeProbe(const ProbeOutcome& outcome, absl::Duration limit);

// Loads the shared object at `path` in a process of its own and reads what it declares.
// INVALID_ARGUMENT says what is wrong with it, whatever it did there: crash, hang, end the process,
// declare nonsense. UNAVAILABLE where no process could be made.
absl::Status ProbePlugin(const std::string& path, const ProbeOptions& options);

// The other side, in main(): the process's exit status if it is there to probe an object, and does
// nothing otherwise.
std::optional<int> RunProbe(int argc, const char* const* argv);

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_PLUGIN_PROBE_H_
