#ifndef PLUMBLINE_WORKER_H3_NOISE_H_
#define PLUMBLINE_WORKER_H3_NOISE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/safetensors.h"
#include "worker/h3/config.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/layout.h"
#include "worker/h3/noise_generator.h"

// The noise that a generation starts from, and the rows that come of it.

namespace plumbline::h3 {

// One draw of a run, and the tensor of that name in a noise file.
struct NoiseDraw {
  std::string name;
  std::vector<int64_t> shape;
};

// A run's draws, in order: "noise.keyframe.N" (1, channels, 1, height, width) of each keyframe,
// "noise.video" (1, channels, frames, height, width), "noise.audio" (rows, channels), where the
// audio rows are all of the left channel and then all of the right.
std::vector<NoiseDraw> NoiseDraws(const TransformerConfig& config, const LayoutSpec& spec);

// Where the noise of one run comes from. One thread at a time.
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;

  // What the values depend on beside the seed: the part "noise" of the run's identity.
  virtual std::string Identity() const = 0;

  // Fills `to`, which has the size of the draw's shape, with the next draw of NoiseDraws.
  virtual absl::Status Draw(const NoiseDraw& draw, absl::Span<float> to) = 0;
};

// One of PyTorch's generators; its identity is FormatRng(rng). `device`, see MakeNormalGenerator,
// must outlive it.
std::unique_ptr<NoiseSource> MakeGeneratorNoise(const Rng& rng, uint64_t seed,
                                                Device* device = nullptr);

// A file that holds exactly the draws of a run, in float32; its identity is "file:" and the SHA-256
// of their names, shapes and bytes. INVALID_ARGUMENT names every tensor that is missing, extra, of
// another type or shape, or not finite.
absl::StatusOr<std::unique_ptr<NoiseSource>> MakeFileNoise(SafetensorsFile file,
                                                           const TransformerConfig& config,
                                                           const LayoutSpec& spec);

// The rows before the first step, and the noise in them.
struct InitialRows {
  HostTensor video;  // (1, keyframes' and target rows, video row width): "rows.0".
  HostTensor audio;  // (1, audio rows, audio channels): "audio.0".

  struct Noise {
    NoiseDraw draw;
    std::string sha256;  // Of its bytes, hex.
  };
  std::vector<Noise> noise;  // In the order of the draws.
};

// Makes every draw of a run. Target rows are noise; each keyframe's are c * x + (1 - c) * noise in
// float32, c = kKeyframeTimestep and x its `condition_latents`, (channels, height, width).
// INVALID_ARGUMENT unless there is one of them for each keyframe of `spec`, of its size.
// RESOURCE_EXHAUSTED if the host's memory is too small.
absl::StatusOr<InitialRows> DrawInitialRows(const TransformerConfig& config, const LayoutSpec& spec,
                                            absl::Span<const HostTensor> condition_latents,
                                            NoiseSource* source);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NOISE_H_
