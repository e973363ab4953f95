#include "worker/jobs/task_failure.h"

#include "common/grpc_status.h"
#include "common/status.h"
#include "kernels/plugin/fault.h"
#include "proto/google/rpc/status.pb.h"

namespace plumbline::jobs {
namespace {

v1::FailureClass ClassOf(const absl::Status& status) {
  if (plugin::IsFault(status)) return v1::FAILURE_CLASS_PLUGIN;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return v1::FAILURE_CLASS_BAD_REQUEST;
    case absl::StatusCode::kCancelled:
      return v1::FAILURE_CLASS_CANCELLED;
    // The computation is the same everywhere, so its faults are too.
    case absl::StatusCode::kInternal:
      return v1::FAILURE_CLASS_NUMERICAL;
    case absl::StatusCode::kDataLoss:
      return GetReason(status) == "STEP_INCONSISTENT" ? v1::FAILURE_CLASS_NUMERICAL
                                                      : v1::FAILURE_CLASS_INFRASTRUCTURE;
    default:
      return v1::FAILURE_CLASS_INFRASTRUCTURE;
  }
}

}  // namespace

v1::TaskFailure MakeTaskFailure(const absl::Status& status) {
  v1::TaskFailure failure;
  *failure.mutable_status() = ToRpcStatus(status);
  failure.set_failure_class(ClassOf(status));
  return failure;
}

}  // namespace plumbline::jobs
