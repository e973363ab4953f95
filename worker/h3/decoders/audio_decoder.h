#ifndef PLUMBLINE_WORKER_H3_DECODERS_AUDIO_DECODER_H_
#define PLUMBLINE_WORKER_H3_DECODERS_AUDIO_DECODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/h3/decoders/config.h"
#include "worker/h3/decoders/graph_calls.h"

namespace plumbline::h3 {

// Latents of a soundtrack (channels, latent channels, latents), normalised as the transformer left
// them, to samples (channels, SamplesPerLatent() * latents) in [-1, 1]; NaN stays NaN. `calls` are
// those of BuildAudioDecoderGraph(config). INVALID_ARGUMENT for latents of another size.
absl::StatusOr<std::vector<float>> DecodeAudio(const AudioDecoderConfig& config, int64_t channels,
                                               int64_t latents, absl::Span<const float> values,
                                               GraphCalls* calls);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_AUDIO_DECODER_H_
