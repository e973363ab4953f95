#include "common/byte_size.h"

#include <gtest/gtest.h>

#include "common/status.h"

namespace plumbline {
namespace {

TEST(ByteSizeTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*ParseByteSize("17179869184", "memory"), int64_t{16} << 30);
  EXPECT_EQ(*ParseByteSize("16GiB", "memory"), int64_t{16} << 30);
  EXPECT_EQ(*ParseByteSize("16 gib", "memory"), int64_t{16} << 30);
  EXPECT_EQ(*ParseByteSize("16GB", "memory"), 16'000'000'000);
  EXPECT_EQ(*ParseByteSize("9223372036854775807", "memory"), 9223372036854775807);
}

TEST(ByteSizeTest, RefusesTheRest) {
  for (const char* text : {"", "0", "GiB", "-1", "1.5GiB", "16 Gibi", "1e9", "9223372036854775808",
                           "8388608TiB", " 1"}) {
    const absl::Status status = ParseByteSize(text, "memory").status();
    ASSERT_EQ(GetFieldViolations(status).size(), 1u) << text;
    EXPECT_EQ(GetFieldViolations(status)[0].field, "memory");
  }
}

}  // namespace
}  // namespace plumbline
