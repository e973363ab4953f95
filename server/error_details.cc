#include "server/error_details.h"

#include <grpcpp/support/status.h>

#include <string>
#include <utility>

#include "common/grpc_status.h"
#include "common/status.h"

namespace plumbline::server {

grpc::Status ToClientStatus(absl::Status status) {
  if (status.ok()) return grpc::Status::OK;
  if (GetReason(status).empty()) {
    const bool invalid = absl::IsInvalidArgument(status);
    status = WithReason(std::move(status),
                        invalid ? "INVALID_FIELD" : absl::StatusCodeToString(status.code()));
  }
  if (absl::IsInvalidArgument(status) && GetFieldViolations(status).empty()) {
    // Of a request that is wrong as a whole, AIP-193 leaves the field empty.
    status = WithFieldViolations(status, {{"", std::string(status.message())}});
  }
  return ToGrpcStatus(status);
}

}  // namespace plumbline::server
