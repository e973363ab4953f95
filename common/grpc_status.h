#ifndef PLUMBLINE_COMMON_GRPC_STATUS_H_
#define PLUMBLINE_COMMON_GRPC_STATUS_H_

#include "absl/status/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace google::rpc {
class Status;
}  // namespace google::rpc

// The one place where a status changes between our form and gRPC's. Code and message stay; field
// violations become google.rpc.BadRequest, preconditions google.rpc.PreconditionFailure, the reason
// google.rpc.ErrorInfo of domain "plumbline", and back. Details of other types are dropped.

namespace plumbline {

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// The same inside a message, e.g. the error of a failed task.
google::rpc::Status ToRpcStatus(const absl::Status& status);
absl::Status FromRpcStatus(const google::rpc::Status& status);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_GRPC_STATUS_H_
