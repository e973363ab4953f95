#include "common/crash_point.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"

namespace plumbline {
namespace {

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

void CrashPoint(absl::string_view name) {
  static Armed* const armed = FindArmed();
  if (armed == nullptr || armed->name != name) return;
  if (armed->passes_left.fetch_sub(1) == 1) _exit(kCrashPointExitStatus);
}

}  // namespace plumbline
