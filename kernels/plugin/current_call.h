// Which call of a plug-in runs in this process, for whoever finds the process broken.
#ifndef PLUMBLINE_KERNELS_PLUGIN_CURRENT_CALL_H_
#define PLUMBLINE_KERNELS_PLUGIN_CURRENT_CALL_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace plumbline::plugin {

// Of a fixed size, so that a signal handler may read it.
struct CallNote {
  char implementation[80];  // "plugin/NAME"
  char node[80];            // "block.3/swiglu"; empty while the plug-in is loaded
  char direction[12];       // "forward", "backward"
};

// From its construction to its end a plug-in's code runs. One at a time in a process: a worker does
// one task on one thread.
class CurrentCall {
 public:
  CurrentCall(absl::string_view implementation, absl::string_view node, bool backward);
  ~CurrentCall();
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;
};

// The call that runs; null between calls. Safe in a signal handler.
const CallNote* RunningCall();
// How many calls have begun: the same number later is the same call. Safe in a signal handler.
int64_t CallsBegun();

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_CURRENT_CALL_H_
