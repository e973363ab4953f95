#include "common/clock.h"

#include "absl/time/clock.h"

namespace plumbline {
namespace {

class WallClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }

  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition,
                  absl::Time deadline) override ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return mutex->AwaitWithDeadline(condition, deadline);
  }
};

}  // namespace

Clock* SystemClock() {
  static Clock* const clock = new WallClock;
  return clock;
}

}  // namespace plumbline
