#ifndef PLUMBLINE_WORKER_LEASE_RETRY_H_
#define PLUMBLINE_WORKER_LEASE_RETRY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "worker/lease/backoff.h"
#include "worker/lease/cancellation.h"
#include "worker/lease/coordinator.h"

namespace plumbline::worker {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Makes a call of the coordinator, an absl::Status or StatusOr, again and again while its error is
// transient. CANCELLED once `cancellation` is raised, whatever the last error was.
template <typename Call>
auto RetryWhileTransient(Clock* clock, Backoff backoff, const Cancellation& cancellation, Call call)
    -> decltype(call()) {
  while (true) {
    auto result = call();
    if (StatusOf(result).ok() || !IsTransient(StatusOf(result))) return result;
    if (cancellation.AwaitUntil(clock, clock->Now() + backoff.Next())) {
      return absl::CancelledError("given up");
    }
  }
}

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_RETRY_H_
