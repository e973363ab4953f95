#include "common/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StatusTest, FieldErrorNamesFieldAndAcceptedValues) {
  const absl::Status status = FieldError("layouts[0]", "unknown layout \"tny\"", "tiny, small");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "layouts[0]: unknown layout \"tny\"; accepted: tiny, small");
  EXPECT_THAT(
      GetFieldViolations(status),
      ElementsAre(FieldViolation{"layouts[0]", "unknown layout \"tny\"; accepted: tiny, small"}));
}

TEST(StatusTest, ViolationsOfAnyBytesSurvive) {
  const std::string odd("3:a\0b\n:", 7);
  const std::vector<FieldViolation> violations = {{odd, ""}, {"", odd}, {"a", "b"}};
  EXPECT_EQ(GetFieldViolations(FieldErrors(violations)), violations);
  EXPECT_TRUE(FieldErrors({}).ok());
}

TEST(StatusTest, OtherStatusesCarryNoViolations) {
  EXPECT_THAT(GetFieldViolations(absl::OkStatus()), IsEmpty());
  EXPECT_THAT(GetFieldViolations(absl::InvalidArgumentError("plain")), IsEmpty());
  EXPECT_EQ(GetReason(absl::InternalError("plain")), "");
}

TEST(StatusTest, AnnotateKeepsCodeAndPayloads) {
  absl::Status status =
      WithReason(FieldError("seed", "negative", "0 to 2^64-1"), "SEED_OUT_OF_RANGE");
  status = AnnotateStatus(status, "task 3");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "task 3: seed: negative; accepted: 0 to 2^64-1");
  EXPECT_EQ(GetReason(status), "SEED_OUT_OF_RANGE");
  EXPECT_EQ(GetFieldViolations(status).size(), 1u);
  EXPECT_TRUE(AnnotateStatus(absl::OkStatus(), "anywhere").ok());
  EXPECT_TRUE(WithReason(absl::OkStatus(), "NONE").ok());
}

TEST(StatusTest, QuotedIsPrintableAndBounded) {
  EXPECT_EQ(Quoted("a\"b\n\xff"), R"("a\"b\n\xff")");
  EXPECT_EQ(Quoted(std::string(100, 'x')).size(), 102u);
  EXPECT_EQ(Quoted(std::string(1 << 20, 'x')), "\"" + std::string(100, 'x') + "...\"");
}

absl::StatusOr<std::unique_ptr<int>> MakeEven(int value) {
  if (value % 2 != 0) return absl::OutOfRangeError("odd");
  return std::make_unique<int>(value);
}

absl::Status AddEven(int value, int* sum) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<int> even, MakeEven(value));
  PLUMBLINE_RETURN_IF_ERROR(*even < 10 ? absl::OkStatus() : absl::OutOfRangeError("large"));
  *sum += *even;
  return absl::OkStatus();
}

TEST(StatusTest, MacrosReturnTheFirstErrorAndGoOnOtherwise) {
  int sum = 0;
  EXPECT_TRUE(AddEven(4, &sum).ok());
  EXPECT_EQ(AddEven(5, &sum).message(), "odd");
  EXPECT_EQ(AddEven(12, &sum).message(), "large");
  EXPECT_EQ(sum, 4);
}

}  // namespace
}  // namespace plumbline
