#include "worker/h3/geometry.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/files.h"

namespace plumbline::h3 {
namespace {

// What the released pipeline computes.
nlohmann::json Captured(const std::string& key) {
  const absl::StatusOr<std::string> text = ReadFile("tests/golden/golden.json", 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return nlohmann::json::parse(*text)["geometry"][key];
}

TEST(GeometryTest, AlignsFrames) {
  const nlohmann::json cases = Captured("align");
  ASSERT_FALSE(cases.empty());
  for (const auto& [frames, aligned] : cases.items()) {
    EXPECT_EQ(AlignFrames(std::stoll(frames)), aligned.get<int64_t>()) << frames;
  }
  for (int64_t frames = 1; frames < 400; ++frames) {
    const int64_t aligned = AlignFrames(frames);
    EXPECT_EQ(aligned % 17, 5);
    EXPECT_GE(aligned, frames);
    EXPECT_TRUE(aligned == 5 || aligned - frames < 17) << frames;
  }
}

TEST(GeometryTest, CountsLatents) {
  const nlohmann::json video = Captured("video_latents");
  ASSERT_FALSE(video.empty());
  for (const auto& [frames, latents] : video.items()) {
    const absl::StatusOr<int64_t> computed = LatentFrames(std::stoll(frames));
    ASSERT_TRUE(computed.ok()) << computed.status();
    EXPECT_EQ(*computed, latents.get<int64_t>()) << frames;
  }
  const nlohmann::json audio = Captured("audio_latents");
  ASSERT_FALSE(audio.empty());
  for (const auto& [frames, latents] : audio.items()) {
    EXPECT_EQ(AudioLatents(std::stoll(frames)), latents.get<int64_t>()) << frames;
  }
  for (int64_t bad : {int64_t{-12}, int64_t{0}, int64_t{4}, int64_t{123}, int64_t{1} << 40}) {
    EXPECT_EQ(LatentFrames(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(GeometryTest, PicksCanvases) {
  const nlohmann::json cases = Captured("canvas");
  ASSERT_FALSE(cases.empty());
  for (const auto& [ratio, sides] : cases.items()) {
    const std::pair<std::string, std::string> terms = absl::StrSplit(ratio, 'x');
    const absl::StatusOr<Canvas> canvas =
        CanvasForAspectRatio(std::stoll(terms.first), std::stoll(terms.second));
    ASSERT_TRUE(canvas.ok()) << canvas.status();
    EXPECT_EQ(canvas->height, sides[0].get<int64_t>()) << ratio;
    EXPECT_EQ(canvas->width, sides[1].get<int64_t>()) << ratio;
  }
  EXPECT_TRUE(CanvasForAspectRatio(4, 1).ok());
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{41, 10},
                                      {10, 41},
                                      {0, 1},
                                      {1, 0},
                                      {-1, -1},
                                      {int64_t{1} << 62, int64_t{1} << 62}}) {
    EXPECT_EQ(CanvasForAspectRatio(width, height).status().code(),
              absl::StatusCode::kInvalidArgument)
        << width << "x" << height;
  }
}

}  // namespace
}  // namespace plumbline::h3
