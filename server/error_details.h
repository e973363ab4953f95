#ifndef PLUMBLINE_SERVER_ERROR_DETAILS_H_
#define PLUMBLINE_SERVER_ERROR_DETAILS_H_

#include "absl/status/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace plumbline::server {

// `status` as every call ends with it: an error always carries a google.rpc.ErrorInfo, whose reason
// is that of the status or else the one of its code (INVALID_FIELD, or the code's own name), and
// INVALID_ARGUMENT always a google.rpc.BadRequest.
grpc::Status ToClientStatus(absl::Status status);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ERROR_DETAILS_H_
