#ifndef PLUMBLINE_WORKER_JOBS_DECODE_LATENTS_H_
#define PLUMBLINE_WORKER_JOBS_DECODE_LATENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/h3/decoders/weights.h"
#include "worker/h3/latent_rows.h"

namespace plumbline::jobs {

// What is decoded: latents of a video, of its sound, or of both, normalised as the transformer
// leaves them.
struct Latents {
  h3::VideoLatentShape video_shape;  // No frames: there is no video.
  std::vector<float> video;          // (channels, frames, height, width)
  int64_t audio_channels = 0;
  int64_t audio_width = 0;    // Values of one channel and instant.
  int64_t audio_latents = 0;  // Instants; 0: there is no sound.
  std::vector<float> audio;   // (audio_channels, audio_width, audio_latents)

  bool has_video() const { return video_shape.frames > 0; }
  bool has_audio() const { return audio_latents > 0; }
};

// Reads a safetensors file with `z` or `latents.video` (1, channels, frames, height, width), or
// `latents.audio` (2, width, latents), or both; a `z` of three dimensions is of a sound. float32.
// INVALID_ARGUMENT on `field` says what the file lacks.
absl::StatusOr<Latents> ReadLatents(const std::string& path, absl::string_view field);

// OK if the decoders take latents of these widths. INVALID_ARGUMENT on `field`.
absl::Status CheckLatents(const Latents& latents, const h3::DecoderWeights& weights,
                          absl::string_view field);

// "latents.video" and "latents.audio", those that there are.
std::vector<v1::TensorDigest> DigestLatents(const Latents& latents);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DECODE_LATENTS_H_
