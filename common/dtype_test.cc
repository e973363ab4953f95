#include "common/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plumbline {
namespace {

using ::testing::HasSubstr;

TEST(DTypeTest, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(DTypeSize(DType::kF64), 8u);
  EXPECT_EQ(DTypeSize(DType::kI64), 8u);
  EXPECT_EQ(DTypeSize(DType::kF32), 4u);
  EXPECT_EQ(DTypeSize(DType::kI32), 4u);
  EXPECT_EQ(DTypeSize(DType::kBF16), 2u);
  EXPECT_EQ(DTypeSize(DType::kF16), 2u);
  EXPECT_EQ(DTypeSize(DType::kU8), 1u);
}

TEST(DTypeTest, NamesParseBack) {
  for (const char* name : {"BF16", "F32", "F16", "F64", "I64", "I32", "U8"}) {
    auto dtype = ParseDType(name);
    ASSERT_TRUE(dtype.ok()) << dtype.status();
    EXPECT_EQ(DTypeName(*dtype), name);
  }
}

TEST(DTypeTest, AnUnknownNameIsQuotedWithTheAcceptedOnes) {
  for (const char* name : {"", "f32", "F8_E4M3", "F32 "}) {
    auto dtype = ParseDType(name);
    ASSERT_FALSE(dtype.ok()) << name;
    EXPECT_EQ(dtype.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(dtype.status().message(), HasSubstr("BF16, F32, F16, F64, I64, I32, U8"));
    EXPECT_THAT(dtype.status().message(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace plumbline
