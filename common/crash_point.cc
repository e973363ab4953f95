#include "common/crash_point.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plumbline {
namespace {

// In the order of CrashPlace.
constexpr absl::string_view kNames[] = {
    "store.step_received",    "store.blobs_written",    "store.blobs_flushed",
    "store.before_commit",    "store.after_commit",     "store.step_recorded",
    "store.blob_quarantined", "store.before_format",    "store.run_deleted",
    "worker.before_compute",  "worker.after_compute",   "worker.after_decode",
    "worker.before_put",      "worker.during_put",      "worker.before_ack",
    "worker.after_ack",       "worker.before_complete",
};
static_assert(std::size(kNames) == static_cast<size_t>(CrashPlace::kWorkerBeforeComplete) + 1,
              "a place lacks a name");

struct Armed {
  std::string name;
  std::atomic<int> passes_left;
};

// Null unless the environment arms a point. Read once: nobody arms a running process.
Armed* FindArmed() {
  const char* const value = std::getenv(kCrashPointVariable);
  if (value == nullptr || *value == 0) return nullptr;
  const absl::string_view text = value;
  const size_t colon = text.rfind(':');
  int count = 1;
  if (colon != absl::string_view::npos && !absl::SimpleAtoi(text.substr(colon + 1), &count)) {
    count = 1;
  }
  auto* const armed = new Armed;  // For the process's life: threads may outlive main().
  armed->name = std::string(text.substr(0, colon));
  armed->passes_left = count;
  return armed;
}

}  // namespace

absl::string_view CrashPlaceName(CrashPlace place) { return kNames[static_cast<size_t>(place)]; }

std::vector<std::string> CrashPlacesOf(absl::string_view program) {
  std::vector<std::string> names;
  for (const absl::string_view name : kNames) {
    if (absl::StartsWith(name, absl::StrCat(program, "."))) names.emplace_back(name);
  }
  return names;
}

void CrashPoint(CrashPlace place) {
  static Armed* const armed = FindArmed();
  if (armed == nullptr || armed->name != CrashPlaceName(place)) return;
  if (armed->passes_left.fetch_sub(1) == 1) _exit(kCrashPointExitStatus);
}

}  // namespace plumbline
