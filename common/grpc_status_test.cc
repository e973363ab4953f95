#include "common/grpc_status.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"

namespace plumbline {
namespace {

using ::testing::IsEmpty;

TEST(GrpcStatusTest, DetailsAreThePublishedMessages) {
  absl::Status status = WithReason(FieldError("seed", "negative", "0 to 9"), "BAD_SEED");
  const grpc::Status sent = ToGrpcStatus(status);
  EXPECT_EQ(sent.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(sent.error_message(), "seed: negative; accepted: 0 to 9");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), sent.error_message());
  ASSERT_EQ(details.details_size(), 2);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "BAD_SEED");
  EXPECT_EQ(info.domain(), "plumbline");
  google::rpc::BadRequest request;
  ASSERT_TRUE(details.details(1).UnpackTo(&request));
  ASSERT_EQ(request.field_violations_size(), 1);
  EXPECT_EQ(request.field_violations(0).field(), "seed");
  EXPECT_EQ(request.field_violations(0).description(), "negative; accepted: 0 to 9");
}

TEST(GrpcStatusTest, EveryCodeAndPayloadComesBack) {
  const std::vector<FieldViolation> violations = {{"a", "b"}, {"c", "d"}};
  for (int code = 1; code <= 16; ++code) {
    absl::Status status(static_cast<absl::StatusCode>(code), "message");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
    status = WithReason(WithFieldViolations(status, violations), kLeaseLostReason);
    status =
        WithPreconditions(status, {{"IDENTITY", "runs/1: kernel", "is a: not b"}, {"", "", ""}});
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
    EXPECT_EQ(FromRpcStatus(ToRpcStatus(status)), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
  EXPECT_TRUE(FromRpcStatus(ToRpcStatus(absl::OkStatus())).ok());
}

TEST(GrpcStatusTest, ForeignDetailsAndCodesDoNoHarm) {
  const absl::Status garbage =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "m", "\xff\xff"));
  EXPECT_EQ(garbage, absl::AbortedError("m"));
  // Details of another code than the status's own are not believed.
  const std::string other = ToRpcStatus(FieldError("a", "b")).SerializeAsString();
  EXPECT_THAT(
      GetFieldViolations(FromGrpcStatus(grpc::Status(grpc::StatusCode::NOT_FOUND, "m", other))),
      IsEmpty());
  google::rpc::Status large;
  large.set_code(77);
  EXPECT_EQ(FromRpcStatus(large).code(), absl::StatusCode::kUnknown);
  large.set_code(-1);
  EXPECT_EQ(FromRpcStatus(large).code(), absl::StatusCode::kUnknown);
}

TEST(GrpcStatusTest, BytesThatAreNoTextCostNoDetails) {
  const absl::Status sent = FieldError("f\xff", "\xc3 is wrong", "\xc3\xa4");
  const grpc::Status status = ToGrpcStatus(sent);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.message(), "f\xef\xbf\xbd: \xef\xbf\xbd is wrong; accepted: \xc3\xa4");
  EXPECT_EQ(status.error_message(), details.message());
  const std::vector<FieldViolation> violations = GetFieldViolations(FromGrpcStatus(status));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "f\xef\xbf\xbd");
}

}  // namespace
}  // namespace plumbline
