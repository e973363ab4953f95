#ifndef PLUMBLINE_WORKER_H3_GENERATION_CONTRACT_H_
#define PLUMBLINE_WORKER_H3_GENERATION_CONTRACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/config.h"
#include "worker/h3/noise_generator.h"
#include "worker/h3/sampler.h"

namespace plumbline::h3 {

// Limits on the quality of a seed against the provider.
struct QualityBounds {
  double psnr_db_min = 30;              // dB; 0 to 300, which is what equal videos have.
  double ssim_min = 0.99;               // -1 to 1.
  double temporal_rmse_max = 0.01;      // Of pixels in [0, 1]; 0 to 2.
  double audio_relative_l2_max = 0.05;  // 0 or more.
};

// What is generated: the fields of plumbline.v1.GenerationContract, defaults filled in. Plain data,
// copied freely.
struct GenerationContract {
  std::vector<uint64_t> seeds;      // A run each; 1 to kMaxSeeds, no two equal.
  int64_t num_frames = 0;           // Pixel frames as asked for; see AlignedFrames.
  int64_t height = 0;               // Pixels, a multiple of 32.
  int64_t width = 0;                // Pixels, a multiple of 32.
  int64_t num_inference_steps = 0;  // Grid points of the schedules.
  double video_shift = kReleasedVideoShift;
  double audio_shift = kReleasedAudioShift;
  double fps = 24;  // Of the video file; a latent lasts as long whatever it is.
  int64_t sampling_rate = 32000;
  Rng rng;
  std::string decoder = "golden";  // A composition, not yet looked up.
  QualityBounds bounds;
  int64_t num_audio_latents = 0;  // Of each channel.
  std::string checkpoint_sha256;  // 64 hexadecimal digits; empty: any checkpoint.
  std::string conditioning_sha256;

  // `num_frames` rounded up to 17 n + 5: what is generated.
  int64_t AlignedFrames() const;
  // 5 n + 2 of them.
  int64_t LatentFrames() const;
  int64_t LatentHeight() const;
  int64_t LatentWidth() const;
};

inline constexpr size_t kMaxSeeds = 1024;

// Reads the JSON of a contract file, or of the message as protobuf prints it: a seed may be a
// number or a string of digits, and a text field that is "" counts as absent. `where` names the
// source. INVALID_ARGUMENT names each field that is unknown, missing, of the wrong type or out of
// range, as "WHERE: FIELD", and what is accepted.
absl::StatusOr<GenerationContract> ParseGenerationContract(absl::string_view json,
                                                           absl::string_view where);

// INVALID_ARGUMENT unless a checkpoint of this configuration can fulfil `contract`: the released
// model makes videos of 124 to 345 frames.
absl::Status CheckContractFits(const GenerationContract& contract, const TransformerConfig& config,
                               absl::string_view where);

// INVALID_ARGUMENT if the contract names another checkpoint or conditioning file than these,
// digests as 64 hexadecimal digits.
absl::Status CheckContractDigests(const GenerationContract& contract,
                                  absl::string_view checkpoint_sha256,
                                  absl::string_view conditioning_sha256, absl::string_view where);

// All fields, defaults included, as one JSON object: names sorted, no white space, doubles with the
// fewest digits that read back the same. Equal for contracts that mean the same, and
// ParseGenerationContract reads it back. Its SHA-256 is the part "contract" of a run's identity.
std::string CanonicalContractJson(const GenerationContract& contract);

// Hex.
std::string ContractDigest(const GenerationContract& contract);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_GENERATION_CONTRACT_H_
