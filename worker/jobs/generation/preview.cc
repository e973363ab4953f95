#include "worker/jobs/generation/preview.h"

#include <cmath>
#include <vector>

#include "worker/media/frame_stream.h"
#include "worker/media/png.h"

namespace plumbline::jobs {
namespace {

constexpr float kRangePerDeviation = 0.2f;
// So many pixels fit whatever they show: noise is not compressible.
constexpr int64_t kMaxPixels = (kMaxPreviewBytes - 4096) / 3;

// Component `index`, from 0, of the projection of a latent of `channels` values.
std::vector<float> ProjectionOf(int64_t index, int64_t channels) {
  std::vector<float> weights;
  const double scale = std::sqrt(2.0 / static_cast<double>(channels));
  for (int64_t channel = 0; channel < channels; ++channel) {
    weights.push_back(static_cast<float>(scale * std::cos(M_PI * static_cast<double>(index + 1) *
                                                          (static_cast<double>(channel) + 0.5) /
                                                          static_cast<double>(channels))));
  }
  return weights;
}

}  // namespace

absl::StatusOr<std::string> LatentPreview(const h3::VideoLatentShape& shape,
                                          absl::Span<const float> rows) {
  h3::VideoLatentShape frame = shape;
  frame.frames = 1;
  const auto values = static_cast<size_t>(frame.NumElements());
  std::vector<float> latents(values);
  h3::Unpatchify(frame, rows.subspan(static_cast<size_t>(shape.frames / 2) * values, values),
                 absl::MakeSpan(latents));
  int64_t stride = 1;
  const auto side = [&stride](int64_t latents) { return (latents + stride - 1) / stride; };
  while (side(shape.height) * side(shape.width) > kMaxPixels) ++stride;
  const int64_t height = side(shape.height);
  const int64_t width = side(shape.width);

  std::vector<uint8_t> planes;
  planes.reserve(static_cast<size_t>(3 * height * width));
  for (int64_t component = 0; component < 3; ++component) {
    const std::vector<float> weights = ProjectionOf(component, shape.channels);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        float projected = 0;
        for (int64_t channel = 0; channel < shape.channels; ++channel) {
          projected += weights[static_cast<size_t>(channel)] *
                       latents[static_cast<size_t>(
                           (channel * shape.height + y * stride) * shape.width + x * stride)];
        }
        planes.push_back(media::ToByte(0.5f + kRangePerDeviation * projected));
      }
    }
  }
  return media::EncodePng(height, width, planes);
}

}  // namespace plumbline::jobs
