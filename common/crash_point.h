#ifndef PLUMBLINE_COMMON_CRASH_POINT_H_
#define PLUMBLINE_COMMON_CRASH_POINT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plumbline {

// All places there are; docs/crash_points.md says what has happened at each.
enum class CrashPlace {
  kStoreStepReceived,
  kStoreBlobsWritten,
  kStoreBlobsFlushed,
  kStoreBeforeCommit,
  kStoreAfterCommit,
  kStoreStepRecorded,
  kStoreBlobQuarantined,
  kStoreBeforeFormat,
  kStoreRunDeleted,
  kWorkerBeforeCompute,
  kWorkerAfterCompute,
  kWorkerAfterDecode,
  kWorkerBeforePut,
  kWorkerDuringPut,
  kWorkerBeforeAck,
  kWorkerAfterAck,
  kWorkerBeforeComplete,
};

// PROGRAM.PLACE, e.g. "worker.before_put".
absl::string_view CrashPlaceName(CrashPlace place);
// Those of a program, "store" or "worker", in the order of the list. For tests, which end it at
// each.
std::vector<std::string> CrashPlacesOf(absl::string_view program);

// Exit status of a process that a crash point ended: what a shell reports of SIGKILL.
inline constexpr int kCrashPointExitStatus = 137;

// The environment variable that arms one crash point: NAME, or NAME:COUNT to pass it COUNT - 1
// times first.
inline constexpr char kCrashPointVariable[] = "PLUMBLINE_CRASH_POINT";

// A place whose loss a test wants to see: where the process's environment arms this point, the
// process ends here at once, with nothing flushed and nobody told, as if killed. Costs a load of a
// pointer otherwise. Any thread may call.
void CrashPoint(CrashPlace place);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_CRASH_POINT_H_
