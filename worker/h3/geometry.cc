#include "worker/h3/geometry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr double kShortSide = 768;
constexpr double kMaxArea = 768.0 * 1344.0;
constexpr double kCanvasStep = 32;
constexpr int64_t kMaxRatioTerm = 1 << 16;

// Ties go to even, as in Python's round().
int64_t NearestCanvasSide(double side) {
  return static_cast<int64_t>(std::nearbyint(side / kCanvasStep) * kCanvasStep);
}

}  // namespace

int64_t AlignFrames(int64_t frames) {
  const int64_t clips = frames <= 5 ? 0 : (frames - 5 + 16) / 17;
  return 17 * clips + 5;
}

absl::StatusOr<int64_t> LatentFrames(int64_t aligned_frames) {
  if (aligned_frames < 5 || aligned_frames > kMaxFrames || aligned_frames % 17 != 5) {
    return FieldError("frames", absl::StrCat(aligned_frames, " frames make no whole clips"),
                      absl::StrCat("17 n + 5 frames, up to ", kMaxFrames));
  }
  return (aligned_frames - 5) / 17 * 5 + 2;
}

int64_t AudioLatents(int64_t frames) {
  return static_cast<int64_t>(
      std::nearbyint(static_cast<double>(frames) / kFramesPerSecond * kAudioLatentsPerSecond));
}

absl::StatusOr<Canvas> CanvasForAspectRatio(int64_t width_ratio, int64_t height_ratio) {
  const bool in_range = width_ratio >= 1 && width_ratio <= kMaxRatioTerm && height_ratio >= 1 &&
                        height_ratio <= kMaxRatioTerm;
  if (!in_range || width_ratio > 4 * height_ratio || height_ratio > 4 * width_ratio) {
    return FieldError("aspect_ratio",
                      absl::StrCat(width_ratio, ":", height_ratio, " cannot be generated"),
                      "1:4 to 4:1");
  }
  const double long_side = kShortSide * static_cast<double>(std::max(width_ratio, height_ratio)) /
                           static_cast<double>(std::min(width_ratio, height_ratio));
  double width = width_ratio >= height_ratio ? long_side : kShortSide;
  double height = width_ratio >= height_ratio ? kShortSide : long_side;
  if (width * height > kMaxArea) {
    const double scale = std::sqrt(kMaxArea / (width * height));
    width *= scale;
    height *= scale;
  }
  return Canvas{NearestCanvasSide(height), NearestCanvasSide(width)};
}

}  // namespace plumbline::h3
