#include "client/exit_status.h"

namespace plumbline::client {

ExitStatus ExitStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitPassed;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return kExitBadRequest;
    default:
      return kExitServiceFailed;
  }
}

ExitStatus ExitStatusOf(const v1::Verdict& verdict) {
  return verdict.outcome() == v1::OUTCOME_FAILED ? kExitGateFailed : kExitPassed;
}

}  // namespace plumbline::client
