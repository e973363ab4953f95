#include "worker/h3/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<LayoutSpec> spec = ParseLayout(text, "layout");
  if (spec.ok()) return "accepted";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(GetFieldViolations(spec.status()).empty());
  return std::string(spec.status().message());
}

TEST(LayoutTest, NamedLayoutsHaveTheirRows) {
  const std::pair<const char*, int64_t> cases[] = {
      {"tiny", 264}, {"small", 925}, {"medium", 3160}, {"released", 38912}};
  for (const auto& [name, rows] : cases) {
    const absl::StatusOr<LayoutSpec> spec = ParseLayout(name, "layout");
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->Rows(), rows) << name;
    EXPECT_EQ(*ParseLayout(FormatLayout(*spec), "layout"), *spec) << name;
  }
  EXPECT_EQ(NamedLayouts(), "tiny, small, medium, released");
}

TEST(LayoutTest, ReadsSixParts) {
  const absl::StatusOr<LayoutSpec> spec = ParseLayout("7,2,6,8,5,first", "layout");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, (LayoutSpec{7, 2, 6, 8, 5, true, false}));
  EXPECT_EQ(spec->RowsPerFrame(), 12);
  EXPECT_EQ(spec->Rows(), 53);
  for (const char* keyframes : {"none", "first", "last", "first+last"}) {
    const std::string text = std::string("1,1,2,2,1,") + keyframes;
    const absl::StatusOr<LayoutSpec> parsed = ParseLayout(text, "layout");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(FormatLayout(*parsed), text);
  }
}

TEST(LayoutTest, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf("huge"),
              AllOf(HasSubstr("layout: unknown layout \"huge\""),
                    HasSubstr("tiny, small, medium, released, or TEXT,FRAMES,HEIGHT,WIDTH,AUDIO")));
  EXPECT_THAT(ErrorOf(""), HasSubstr("unknown layout"));
  EXPECT_THAT(ErrorOf("7,2,6,8,5"), HasSubstr("unknown layout"));
  EXPECT_THAT(ErrorOf("7,2,6,8,5,first,"), HasSubstr("unknown layout"));
  EXPECT_THAT(ErrorOf("0,2,6,8,5,first"), HasSubstr("layout.text_rows: 0"));
  EXPECT_THAT(ErrorOf("7,-2,6,8,5,first"), HasSubstr("layout.latent_frames: -2"));
  EXPECT_THAT(ErrorOf("7,2,5,8,5,first"),
              HasSubstr("layout.latent_height: 5 is not possible; accepted: even numbers from 2"));
  EXPECT_THAT(ErrorOf("7,2,6,7,5,first"), HasSubstr("layout.latent_width: 7"));
  EXPECT_THAT(ErrorOf("7,2,6,8,x,first"), HasSubstr("layout.audio_latents: \"x\""));
  EXPECT_THAT(ErrorOf("7,2,6,8,99999999999999999999,first"), HasSubstr("layout.audio_latents"));
  EXPECT_THAT(ErrorOf("7,2,6,8,5,middle"),
              AllOf(HasSubstr("layout.keyframes"), HasSubstr("none, first, last, first+last")));
}

TEST(LayoutTest, BoundsRows) {
  EXPECT_THAT(ErrorOf("4194304,65536,4096,4096,4194304,first+last"),
              HasSubstr("accepted: at most 4194304 rows"));
  EXPECT_EQ(ErrorOf("194,102,48,84,575,first+last"), "accepted");  // 15 seconds.
  LayoutSpec hostile;
  hostile.text_rows = INT64_MAX;
  hostile.latent_frames = INT64_MAX;
  hostile.latent_height = INT64_MAX - 1;
  hostile.latent_width = INT64_MAX - 1;
  hostile.audio_latents = INT64_MIN;
  EXPECT_EQ(GetFieldViolations(ValidateLayoutSpec(hostile, "layout")).size(), 5);
}

}  // namespace
}  // namespace plumbline::h3
