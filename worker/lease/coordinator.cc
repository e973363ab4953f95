#include "worker/lease/coordinator.h"

#include <string>

#include "common/status.h"

namespace plumbline::worker {

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    // What gRPC makes of a stream that broke.
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return true;
    case absl::StatusCode::kAborted:
      return GetReason(status) != kLeaseLostReason;
    case absl::StatusCode::kResourceExhausted:
      return GetReason(status) == "RATE_LIMIT";
    default:
      return false;
  }
}

bool IsLeaseLost(const absl::Status& status) {
  return (absl::IsAborted(status) && GetReason(status) == kLeaseLostReason) ||
         absl::IsNotFound(status);
}

bool MustRegister(const absl::Status& status) { return absl::IsFailedPrecondition(status); }

}  // namespace plumbline::worker
