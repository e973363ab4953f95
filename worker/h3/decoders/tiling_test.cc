#include "worker/h3/decoders/tiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "common/status.h"
#include "worker/h3/decoders/blend.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TilingOptions kReleased;

TEST(TilingTest, TilesOfTheReleasedSize) {
  const TileAxis rows = SplitAxis(768, 16, kReleased);
  EXPECT_THAT(rows.starts, ElementsAre(0, 160, 336, 512));
  EXPECT_EQ(rows.length, 256);
  EXPECT_THAT(SplitAxis(1344, 16, kReleased).starts, ElementsAre(0, 176, 352, 528, 704, 896, 1088));
}

TEST(TilingTest, TilesCoverEveryLengthAndOverlapEnough) {
  for (int64_t pixels = 16; pixels <= 3000; pixels += 16) {
    const TileAxis axis = SplitAxis(pixels, 16, kReleased);
    EXPECT_EQ(axis.starts.front(), 0);
    EXPECT_EQ(axis.starts.back() + axis.length, pixels);
    for (size_t i = 1; i < axis.count(); ++i) {
      EXPECT_GE(axis.OverlapBefore(i), 64) << pixels;
      EXPECT_LT(axis.OverlapBefore(i), 256) << pixels;
      EXPECT_LE(axis.OverlapBefore(i), axis.OverlapBefore(1)) << pixels;
      EXPECT_EQ(axis.starts[i] % 16, 0) << pixels;
    }
    if (axis.count() > 1) {
      const auto fewer = static_cast<int64_t>(axis.count()) - 1;
      EXPECT_LT(256 * fewer - 64 * (fewer - 1), pixels) << "one tile too many for " << pixels;
    }
  }
  EXPECT_THAT(SplitAxis(1344, 16, {false}).starts, ElementsAre(0));
  EXPECT_EQ(SplitAxis(1344, 16, {false}).length, 1344);
}

TEST(TilingTest, RefusesTilesThatCannotBe) {
  const VideoDecoderConfig config = TinyVideoDecoder();
  EXPECT_TRUE(CheckTiling({}, config, "").ok());
  EXPECT_TRUE(CheckTiling({true, 48, 16}, config, "").ok());
  EXPECT_TRUE(CheckTiling({false, 0, 0}, config, "").ok());
  const std::vector<std::pair<TilingOptions, const char*>> wrong = {
      {{true, 0, 0}, "decode.tile"},
      {{true, 16, 0}, "decode.tile"},
      {{true, 250, 64}, "decode.tile"},
      {{true, -256, 64}, "decode.tile"},
      {{true, 256, -16}, "decode.tile_overlap"},
      {{true, 256, 60}, "decode.tile_overlap"},
      {{true, 256, 144}, "decode.tile_overlap"}};
  for (const auto& [options, field] : wrong) {
    const absl::Status status = CheckTiling(options, config, "decode.");
    ASSERT_FALSE(status.ok()) << options.tile << ", " << options.overlap;
    ASSERT_EQ(GetFieldViolations(status).size(), 1u);
    EXPECT_EQ(GetFieldViolations(status)[0].field, field);
  }
}

// Tiles that hold the same value at the same pixel give it back, whatever the seams.
class RampTest : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

INSTANTIATE_TEST_SUITE_P(Sizes, RampTest,
                         testing::Values(std::make_pair(768, 1344), std::make_pair(464, 272),
                                         std::make_pair(256, 480), std::make_pair(512, 512)));

TEST_P(RampTest, ARampHasNoStepAtAnySeam) {
  const auto [height, width] = GetParam();
  const TileAxis rows = SplitAxis(height, 16, kReleased);
  const TileAxis columns = SplitAxis(width, 16, kReleased);
  const auto ramp = [](int64_t y, int64_t x) {
    return static_cast<float>(y) * 0.003f + static_cast<float>(x) * 0.001f;
  };
  for (const BlendRounding rounding : {BlendRounding::kFloat32, BlendRounding::kFloat16}) {
    // float16 has 11 bits, and a pixel is rounded three times along each axis.
    const float tolerance = rounding == BlendRounding::kFloat32 ? 1e-6f : 8e-3f;
    TileJoiner joiner(/*planes=*/1, rows, columns, height, width, rounding);
    for (const int64_t top : rows.starts) {
      for (const int64_t left : columns.starts) {
        std::vector<float> tile;
        for (int64_t y = 0; y < rows.length; ++y) {
          for (int64_t x = 0; x < columns.length; ++x) tile.push_back(ramp(top + y, left + x));
        }
        joiner.Add(std::move(tile));
      }
    }
    const std::vector<float> joined = joiner.Take();
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const float value = joined[static_cast<size_t>(y * width + x)];
        ASSERT_NEAR(value, ramp(y, x), tolerance) << y << ", " << x;
      }
    }
  }
}

// Tiles of different brightness fade into one another where two meet: no neighbours differ by more
// than a step of the narrowest overlap. (Where four meet the rule of the corner has steps of its
// own.)
TEST(BlendTest, DifferentTilesFadeWithoutASeam) {
  const TileAxis one = SplitAxis(32, 16, kReleased);
  const TileAxis many = SplitAxis(1344, 16, kReleased);
  const float most = 1.0f / 64 + 1e-6f;
  for (const bool down : {false, true}) {
    const int64_t height = down ? 1344 : 32, width = down ? 32 : 1344;
    TileJoiner joiner(1, down ? many : one, down ? one : many, height, width,
                      BlendRounding::kFloat32);
    for (size_t i = 0; i < many.count(); ++i) {
      joiner.Add(std::vector<float>(32 * 256, static_cast<float>(i % 2)));
    }
    const std::vector<float> joined = joiner.Take();
    const int64_t step = down ? width : 1;
    for (int64_t i = step; i < height * width; ++i) {
      if (!down && i % width == 0) continue;
      const float change = joined[static_cast<size_t>(i)] - joined[static_cast<size_t>(i - step)];
      ASSERT_LE(std::fabs(change), most) << i;
    }
    EXPECT_EQ(joined.front(), 0.0f);
    EXPECT_EQ(joined[static_cast<size_t>(step * 176)], 0.0f);
    EXPECT_EQ(joined[static_cast<size_t>(step * 300)], 1.0f);
  }
}

// The corner of four tiles: above is blended in first, then the unblended tile to the left; the
// diagonal tile does not enter.
TEST(BlendTest, ACornerIsTheFormulas) {
  const TileAxis axis = SplitAxis(48, 16, {true, 32, 16});
  ASSERT_THAT(axis.starts, ElementsAre(0, 16));
  TileJoiner joiner(1, axis, axis, 48, 48, BlendRounding::kFloat32);
  const float diagonal = 1000, above = 1, left = 2, present = 4;
  for (const float value : {diagonal, above, left, present}) {
    joiner.Add(std::vector<float>(32 * 32, value));
  }
  const std::vector<float> joined = joiner.Take();
  for (int64_t y = 0; y < 16; ++y) {
    for (int64_t x = 0; x < 16; ++x) {
      const float ry = static_cast<float>(y) / 16, rx = static_cast<float>(x) / 16;
      const float expected = (1 - rx) * left + rx * ((1 - ry) * above + ry * present);
      EXPECT_NEAR(joined[static_cast<size_t>((16 + y) * 48 + 16 + x)], expected, 1e-6)
          << y << ", " << x;
    }
  }
}

// What diffusers' decode gives for every number of latent frames, counted as it counts: clips of 17
// and the 5 behind the last, less the frames of the latents that were repeated.
TEST(ClipPlanTest, FramesOfEveryLength) {
  const VideoDecoderConfig config = ReleasedVideoDecoder();
  for (int64_t latents = 3; latents <= 40; ++latents) {
    const auto plan = PlanClips(config, latents);
    ASSERT_TRUE(plan.ok()) << latents << ": " << plan.status();
    // Latent 5 n of a video stands for one frame and the four behind it for four each, but a video
    // ends with whole clips of 17 frames and 5 more.
    int64_t expected = 0;
    for (int64_t latent = 0; latent < latents; ++latent) expected += latent % 5 == 0 ? 1 : 4;
    EXPECT_EQ(plan->frames, expected) << latents;
    int64_t sum = 0;
    for (int64_t clip = 0; clip < plan->clips; ++clip) {
      EXPECT_GT(plan->FramesOf(clip), 0) << latents << ", " << clip;
      sum += plan->FramesOf(clip);
      for (int64_t i = 0; i < plan->clip_latents; ++i) {
        EXPECT_EQ(plan->LatentOf(clip, i), std::min(5 * clip + i, latents - 1));
      }
    }
    EXPECT_EQ(sum, plan->frames) << latents;
    EXPECT_GE(5 * (plan->clips - 1) + 7, latents) << "latents are left over";
    if (latents % 5 == 2) {
      EXPECT_EQ(plan->frames, 17 * ((latents - 2) / 5) + 5) << latents;
    }
  }
  EXPECT_EQ(PlanClips(config, 37)->clips, 7);
  EXPECT_EQ(PlanClips(config, 37)->frames, 124);
}

TEST(ClipPlanTest, TooFewLatentsMakeNoClip) {
  for (const int64_t latents : {-1, 0, 1, 2}) {
    const auto plan = PlanClips(ReleasedVideoDecoder(), latents);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(plan.status().message(), HasSubstr("no clip; 3 or more do")) << latents;
  }
}

// Frames of clips fade over five, the first of them wholly of the earlier clip.
TEST(ClipJoinerTest, FadesOverFiveFrames) {
  const ClipPlan plan = *PlanClips(ReleasedVideoDecoder(), 12);
  ASSERT_EQ(plan.clips, 2);
  ClipJoiner joiner(plan, /*channels=*/3, /*pixels=*/2, BlendRounding::kFloat32);
  // Clip k, frame f, channel c: 100 k + f + c / 10.
  const auto clip = [](int64_t k) {
    std::vector<float> values;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t f = 0; f < 28; ++f) {
        values.insert(values.end(), 2, static_cast<float>(100 * k + f) + 0.1f * c);
      }
    }
    return values;
  };
  const std::vector<float> first = joiner.Add(clip(0));
  const std::vector<float> tail = joiner.tail();
  const std::vector<float> second = joiner.Add(clip(1));
  ASSERT_EQ(first.size(), 17u * 6);
  ASSERT_EQ(second.size(), 22u * 6);
  for (int64_t frame = 0; frame < 17; ++frame) {
    EXPECT_NEAR(first[static_cast<size_t>(frame * 6 + 2)], 3 + frame + 0.1, 1e-5);
  }
  for (int64_t frame = 0; frame < 22; ++frame) {
    double expected = frame < 17 ? 100 + 3 + frame : 100 + 23 + frame - 17;
    if (frame < 5) expected = (23 + frame) * (1 - frame / 5.0) + expected * (frame / 5.0);
    EXPECT_NEAR(second[static_cast<size_t>(frame * 6 + 2)], expected + 0.1, 1e-4) << frame;
  }

  ClipJoiner resumed(plan, 3, 2, BlendRounding::kFloat32);
  resumed.Resume(1, tail);
  EXPECT_EQ(resumed.Add(clip(1)), second);
}

}  // namespace
}  // namespace plumbline::h3
