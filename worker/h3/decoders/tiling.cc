#include "worker/h3/decoders/tiling.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

// What must be added to `value` for a multiple of `unit`.
int64_t Lacking(int64_t value, int64_t unit) { return (unit - value % unit) % unit; }

}  // namespace

absl::Status CheckTiling(const TilingOptions& options, const VideoDecoderConfig& config,
                         absl::string_view prefix) {
  if (!options.enabled) return absl::OkStatus();
  const int64_t patch = config.patch_size;
  if (options.tile < 2 * patch || options.tile % patch != 0) {
    return FieldError(absl::StrCat(prefix, "tile"), absl::StrCat(options.tile, " is no tile side"),
                      absl::StrCat("multiples of ", patch, ", at least ", 2 * patch));
  }
  if (options.overlap < 0 || options.overlap % patch != 0 || 2 * options.overlap > options.tile) {
    return FieldError(absl::StrCat(prefix, "tile_overlap"),
                      absl::StrCat(options.overlap, " is no overlap of tiles of ", options.tile),
                      absl::StrCat("multiples of ", patch, " from 0 to half of the tile"));
  }
  return absl::OkStatus();
}

TileAxis SplitAxis(int64_t pixels, int64_t step, const TilingOptions& options) {
  TileAxis axis;
  if (!options.enabled || options.tile >= pixels) {
    axis.starts = {0};
    axis.length = pixels;
    return axis;
  }
  int64_t count = (pixels + options.tile - 1) / options.tile;
  while (options.tile * count - options.overlap * (count - 1) < pixels) ++count;
  std::vector<int64_t> overlaps(static_cast<size_t>(count - 1), options.overlap);
  const int64_t slack = options.tile * count - options.overlap * (count - 1) - pixels;
  for (int64_t i = 0; i < slack / step; ++i) {
    overlaps[static_cast<size_t>(i) % overlaps.size()] += step;
  }
  axis.length = options.tile;
  axis.starts.push_back(0);
  for (const int64_t overlap : overlaps) {
    axis.starts.push_back(axis.starts.back() + options.tile - overlap);
  }
  return axis;
}

int64_t ClipPlan::LatentOf(int64_t clip, int64_t index) const {
  return std::min(clip * stride + index, latents - 1);
}

int64_t ClipPlan::FramesOf(int64_t clip) const {
  const int64_t before = clip * kept;
  const int64_t after = clip + 1 == clips ? frames : std::min(frames, before + kept);
  return std::max<int64_t>(0, after - before);
}

absl::StatusOr<ClipPlan> PlanClips(const VideoDecoderConfig& config, int64_t latents) {
  const int64_t ratio = config.patch_size_t;
  ClipPlan plan;
  plan.latents = latents;
  plan.stride = (config.clip_length + ratio - 1) / ratio;
  const int64_t shared = Lacking(config.token_drop, plan.stride);
  plan.clip_latents = plan.stride + shared;
  plan.dropped = Lacking(config.clip_length, ratio);
  plan.kept = plan.stride * ratio - plan.dropped;
  plan.faded = std::max<int64_t>(shared * ratio - plan.dropped, 0);
  const int64_t padding = Lacking(latents + config.token_drop, plan.stride);
  plan.clips = (latents + config.token_drop + padding) / plan.stride - 1;
  if (latents < 1 || plan.clips < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(latents, latents == 1 ? " latent frame makes" : " latent frames make",
                     " no clip; ", plan.stride - config.token_drop + 1, " or more do"));
  }
  // The first latent frame of a clip stands for what is left of its frames.
  const int64_t first = config.clip_length % ratio;
  plan.frames = plan.clips * plan.kept + plan.faded;
  for (int64_t latent = latents; latent < latents + padding; ++latent) {
    plan.frames -= first != 0 && latent % plan.stride == 0 ? first : ratio;
  }
  return plan;
}

}  // namespace plumbline::h3
