#include "worker/h3/latent_rows.h"

#include <cstddef>

namespace plumbline::h3 {
namespace {

// Calls visit(index of a latent, index of its place in the rows) for every latent, in the order of
// the rows.
template <typename Visit>
void ForEachLatent(const VideoLatentShape& shape, Visit visit) {
  size_t place = 0;
  for (int64_t frame = 0; frame < shape.frames; ++frame) {
    for (int64_t top = 0; top < shape.height; top += kPatchSide) {
      for (int64_t left = 0; left < shape.width; left += kPatchSide) {
        for (int64_t channel = 0; channel < shape.channels; ++channel) {
          for (int64_t y = top; y < top + kPatchSide; ++y) {
            const size_t line = ((channel * shape.frames + frame) * shape.height + y) * shape.width;
            for (int64_t x = left; x < left + kPatchSide; ++x) visit(line + x, place++);
          }
        }
      }
    }
  }
}

}  // namespace

void Patchify(const VideoLatentShape& shape, absl::Span<const float> latents,
              absl::Span<float> rows) {
  ForEachLatent(shape, [&](size_t latent, size_t place) { rows[place] = latents[latent]; });
}

void Unpatchify(const VideoLatentShape& shape, absl::Span<const float> rows,
                absl::Span<float> latents) {
  ForEachLatent(shape, [&](size_t latent, size_t place) { latents[latent] = rows[place]; });
}

void UnpackAudioRows(int64_t latents_per_channel, int64_t width, absl::Span<const float> rows,
                     absl::Span<float> latents) {
  for (int64_t channel = 0; channel < 2; ++channel) {
    const size_t base = channel * latents_per_channel * width;
    for (int64_t i = 0; i < latents_per_channel; ++i) {
      for (int64_t k = 0; k < width; ++k) {
        latents[base + k * latents_per_channel + i] = rows[base + i * width + k];
      }
    }
  }
}

}  // namespace plumbline::h3
