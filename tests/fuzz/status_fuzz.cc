// Errors with details as a server sends them, and errors that quote whatever they were given.
#include <grpcpp/support/status.h>

#include <string>

#include "common/grpc_status.h"
#include "common/status.h"
#include "proto/google/rpc/status.pb.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  fuzz::Input input(data, size);
  const auto code = static_cast<grpc::StatusCode>(input.Byte() % 17);
  const std::string message(input.Text());
  const std::string details(input.Rest());
  const absl::Status status = FromGrpcStatus(grpc::Status(code, message, details));
  FUZZ_REQUIRE(status.ok() == (code == grpc::StatusCode::OK));
  for (const absl::Status& each :
       {status, WithReason(FieldError(message, details, message), "REASON"),
        WithPreconditions(absl::FailedPreconditionError(details), {{message, details, message}})}) {
    const grpc::Status sent = ToGrpcStatus(each);
    google::rpc::Status parsed;
    FUZZ_REQUIRE(parsed.ParseFromString(sent.error_details()));
    const absl::Status back = FromGrpcStatus(sent);
    FUZZ_REQUIRE(back.code() == each.code());
    FUZZ_REQUIRE(GetFieldViolations(back).size() == GetFieldViolations(each).size());
    FUZZ_REQUIRE(GetPreconditions(back).size() == GetPreconditions(each).size());
  }
  return 0;
}
