#ifndef PLUMBLINE_WORKER_H3_LAYOUT_H_
#define PLUMBLINE_WORKER_H3_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::h3 {

// The shape of one packed sequence: how many rows of what, before any timestep is known.
struct LayoutSpec {
  int64_t text_rows = 0;
  int64_t latent_frames = 0;
  int64_t latent_height = 0;  // Even: a video row is a patch of 2 x 2 latents.
  int64_t latent_width = 0;   // Even.
  int64_t audio_latents = 0;  // Of each of the two channels.
  bool first_keyframe = false;
  bool last_keyframe = false;

  int64_t RowsPerFrame() const { return latent_height / 2 * (latent_width / 2); }
  int64_t Keyframes() const { return (first_keyframe ? 1 : 0) + (last_keyframe ? 1 : 0); }
  int64_t KeyframeRows() const { return Keyframes() * RowsPerFrame(); }
  int64_t AudioRows() const { return 2 * audio_latents; }
  int64_t VideoRows() const { return latent_frames * RowsPerFrame(); }
  // All rows: text, keyframes, audio, video.
  int64_t Rows() const { return text_rows + KeyframeRows() + AudioRows() + VideoRows(); }

  friend bool operator==(const LayoutSpec& a, const LayoutSpec& b);
  friend bool operator!=(const LayoutSpec& a, const LayoutSpec& b) { return !(a == b); }
};

// The most rows that a layout may have, some forty times the longest released video's.
inline constexpr int64_t kMaxRows = 1 << 22;

// OK if every count is positive, the latent sides are even and there are at most kMaxRows rows;
// otherwise INVALID_ARGUMENT with every violation. Fields are named "FIELD.text_rows" and so on.
absl::Status ValidateLayoutSpec(const LayoutSpec& spec, absl::string_view field);

// Reads "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES" (HEIGHT and WIDTH in latents, KEYFRAMES "none",
// "first", "last" or "first+last"), or the name of a layout: "tiny", "small", "medium", "released".
// INVALID_ARGUMENT names `field`, the part that is wrong and what is accepted.
absl::StatusOr<LayoutSpec> ParseLayout(absl::string_view text, absl::string_view field);

// The names that ParseLayout knows, as an error lists them: "tiny, small, medium, released".
std::string NamedLayouts();

// "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES": ParseLayout reads it back.
std::string FormatLayout(const LayoutSpec& spec);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_LAYOUT_H_
