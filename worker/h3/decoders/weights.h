#ifndef PLUMBLINE_WORKER_H3_DECODERS_WEIGHTS_H_
#define PLUMBLINE_WORKER_H3_DECODERS_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/decoders/config.h"
#include "worker/h3/parameter_source.h"

namespace plumbline::h3 {

// The two decoders of a checkpoint. Immutable, copied freely.
struct DecoderWeights {
  VideoDecoderConfig video_config;
  std::shared_ptr<const ParameterSource> video;
  AudioDecoderConfig audio_config;
  std::shared_ptr<const ParameterSource> audio;

  // Tells decoders apart, as ParameterSource::Identity() does: both identities, the video's first.
  // A file's reads every byte once.
  absl::StatusOr<std::string> Identity() const;
};

// Opens the decoders of what a request calls a checkpoint, as worker/h3/checkpoint.h has it:
//   DIRECTORY             its folders vae/ and audio_vae/; tensors of the encoders are passed over
//   synthetic:released    computed weights of the released size
//   synthetic:tiny        of the size of the bundled checkpoint's; so too for
//   synthetic:CONFIG.json whose file describes the transformer alone
// The seed of a synthetic one decides nothing here. Every error but RESOURCE_EXHAUSTED is
// INVALID_ARGUMENT and begins with "checkpoint: ".
absl::StatusOr<DecoderWeights> OpenDecoders(absl::string_view spec,
                                            const std::vector<std::string>& roots);

// Weights that are computed from their names (kernels/numerics/synthetic.h), the same at any seed
// of the transformer's. The filters of the audio decoder's activations are those of every
// checkpoint.
std::shared_ptr<const ParameterSource> MakeSyntheticDecoder(const VideoDecoderConfig& config);
std::shared_ptr<const ParameterSource> MakeSyntheticDecoder(const AudioDecoderConfig& config);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_WEIGHTS_H_
