#ifndef PLUMBLINE_COMMON_CRASH_POINT_H_
#define PLUMBLINE_COMMON_CRASH_POINT_H_

#include "absl/strings/string_view.h"

namespace plumbline {

// Exit status of a process that a crash point ended: what a shell reports of SIGKILL.
inline constexpr int kCrashPointExitStatus = 137;

// The environment variable that arms one crash point: NAME, or NAME:COUNT to pass it COUNT - 1
// times first.
inline constexpr char kCrashPointVariable[] = "PLUMBLINE_CRASH_POINT";

// A place whose loss a test wants to see: where the process's environment arms this point, the
// process ends here at once, with nothing flushed and nobody told, as if killed. Costs a load of a
// pointer otherwise. Names are PROGRAM.PLACE, e.g. "worker.before_put". Any thread may call.
void CrashPoint(absl::string_view name);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_CRASH_POINT_H_
