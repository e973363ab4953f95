#include "common/http_message.h"

#include <gtest/gtest.h>

#include <tuple>

namespace plumbline {
namespace {

TEST(HttpMessageTest, AFieldValueStaysWithinItsLine) {
  EXPECT_TRUE(IsFieldValue(""));
  EXPECT_TRUE(IsFieldValue("text/plain; charset=utf-8 \xc3\xa9"));
  for (const char* const bad : {"a\rb", "a\nb", "\x7f", "\x1b"}) EXPECT_FALSE(IsFieldValue(bad));
  EXPECT_FALSE(IsFieldValue(absl::string_view("\0", 1)));
}

TEST(HttpMessageTest, Targets) {
  const auto target = ParseHttpTarget("/a%20b/c?x=1%262&y=&x=3&z");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/a b/c");
  EXPECT_EQ(target->query.at("x"), "1&2");
  EXPECT_EQ(target->query.at("y"), "");
  EXPECT_EQ(target->query.at("z"), "");
  for (const char* bad : {"", "a", "*", "http://host/", "/%", "/%4", "/%4g", "/%00", "/a\nb",
                          "/%0a", "/?%", "/%7f"}) {
    EXPECT_FALSE(ParseHttpTarget(bad).has_value()) << bad;
  }
}

TEST(HttpMessageTest, Ranges) {
  const auto parsed = [](const char* header, int64_t size) {
    ByteRange range;
    const RangeKind kind = ParseRange(header, size, &range);
    return std::make_tuple(kind, range.offset, range.length);
  };
  const auto part = [](int64_t offset, int64_t length) {
    return std::make_tuple(RangeKind::kPart, offset, length);
  };
  const auto whole = std::make_tuple(RangeKind::kWhole, int64_t{0}, int64_t{0});
  const auto none = std::make_tuple(RangeKind::kUnsatisfiable, int64_t{0}, int64_t{0});
  EXPECT_EQ(parsed("bytes=0-", 10), part(0, 10));
  EXPECT_EQ(parsed("bytes=2-4", 10), part(2, 3));
  EXPECT_EQ(parsed("bytes=9-20", 10), part(9, 1));
  EXPECT_EQ(parsed("bytes=-3", 10), part(7, 3));
  EXPECT_EQ(parsed("bytes=-30", 10), part(0, 10));
  EXPECT_EQ(parsed("bytes=10-", 10), none);
  EXPECT_EQ(parsed("bytes=-0", 10), none);
  EXPECT_EQ(parsed("bytes=0-", 0), none);
  for (const char* odd :
       {"", "bytes", "bytes=", "bytes=-", "bytes=4-2", "bytes=a-b", "bytes=1-2,4-5", "items=0-1",
        "bytes=+1-2", "bytes= 1-2", "bytes=99999999999999999999-", "bytes=1--2"}) {
    EXPECT_EQ(parsed(odd, 10), whole) << odd;
  }
}

TEST(HttpMessageTest, EntityTags) {
  EXPECT_TRUE(NamesEntityTag("\"a\"", "a"));
  EXPECT_TRUE(NamesEntityTag("\"b\", W/\"a\"", "a"));
  EXPECT_TRUE(NamesEntityTag("*", "a"));
  EXPECT_FALSE(NamesEntityTag("a", "a"));
  EXPECT_FALSE(NamesEntityTag("\"ab\"", "a"));
  EXPECT_FALSE(NamesEntityTag("", "a"));
  EXPECT_FALSE(NamesEntityTag("*", ""));
}

}  // namespace
}  // namespace plumbline
