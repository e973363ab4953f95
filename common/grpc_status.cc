#include "common/grpc_status.h"

#include <grpcpp/support/status.h>

#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/utf8.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"

namespace plumbline {
namespace {

constexpr char kDomain[] = "plumbline";

// absl's and gRPC's codes have the same numbers by design; numbers beyond them mean UNKNOWN.
absl::StatusCode ToCode(int code) {
  return code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)
             ? absl::StatusCode::kUnknown
             : static_cast<absl::StatusCode>(code);
}

}  // namespace

// A message may quote a file's name, which need not be UTF-8.
google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  result.set_message(ToUtf8(std::string(status.message())));
  if (const std::string reason = GetReason(status); !reason.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    info.set_domain(kDomain);
    result.add_details()->PackFrom(info);
  }
  if (std::vector<FieldViolation> violations = GetFieldViolations(status); !violations.empty()) {
    google::rpc::BadRequest request;
    for (FieldViolation& violation : violations) {
      auto* const added = request.add_field_violations();
      added->set_field(ToUtf8(std::move(violation.field)));
      added->set_description(ToUtf8(std::move(violation.description)));
    }
    result.add_details()->PackFrom(request);
  }
  if (std::vector<Precondition> preconditions = GetPreconditions(status); !preconditions.empty()) {
    google::rpc::PreconditionFailure failure;
    for (Precondition& precondition : preconditions) {
      auto* const added = failure.add_violations();
      added->set_type(ToUtf8(std::move(precondition.type)));
      added->set_subject(ToUtf8(std::move(precondition.subject)));
      added->set_description(ToUtf8(std::move(precondition.description)));
    }
    result.add_details()->PackFrom(failure);
  }
  return result;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  std::vector<FieldViolation> violations;
  std::vector<Precondition> preconditions;
  std::string reason;
  for (const auto& detail : status.details()) {
    google::rpc::BadRequest request;
    google::rpc::PreconditionFailure failure;
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&request)) {
      for (const auto& violation : request.field_violations()) {
        violations.push_back({violation.field(), violation.description()});
      }
    } else if (detail.UnpackTo(&failure)) {
      for (const auto& violation : failure.violations()) {
        preconditions.push_back({violation.type(), violation.subject(), violation.description()});
      }
    } else if (detail.UnpackTo(&info)) {
      reason = info.reason();
    }
  }
  absl::Status result(ToCode(status.code()), status.message());
  if (!violations.empty()) result = WithFieldViolations(std::move(result), violations);
  if (!preconditions.empty()) result = WithPreconditions(std::move(result), preconditions);
  if (!reason.empty()) result = WithReason(std::move(result), reason);
  return result;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status details = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), details.message(),
                      details.details().empty() ? "" : details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  // What is no google.rpc.Status, or that of another error, is not ours to interpret.
  if (!details.ParseFromString(status.error_details()) || details.code() != status.error_code()) {
    details.Clear();
  }
  details.set_code(status.error_code());
  details.set_message(status.error_message());
  return FromRpcStatus(details);
}

}  // namespace plumbline
