#ifndef PLUMBLINE_WORKER_JOBS_DECODE_DECODING_H_
#define PLUMBLINE_WORKER_JOBS_DECODE_DECODING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graph_calls.h"
#include "worker/h3/decoders/tiling.h"
#include "worker/h3/decoders/video_decoder.h"
#include "worker/h3/decoders/weights.h"
#include "worker/h3/graph.h"
#include "worker/jobs/decode/kept_units.h"
#include "worker/jobs/decode/latents.h"
#include "worker/jobs/decode/outputs.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Latents to be decoded under a composition.
struct DecodingRequest {
  h3::DecoderWeights weights;
  std::string composition;
  h3::TilingOptions tiling;
  Latents latents;
  double frames_per_second = 24;
  OutputRequest outputs;
  // Whose latents they are, "runs/{run}", or empty: a file's. Units are kept as long as it is
  // needed.
  std::string decode_of;
  uint64_t seed = 0;
  bool preflight = false;
  // Prefix of fields in errors: "decode.".
  std::string field;
};

struct DecodingResult {
  v1::DecodeReport report;
  v1::NumericalIdentity identity;
  std::vector<OutputFile> files;
  bool hybrid = false;
};

// "39 frames of 64 x 80 and 7200 samples", for verdicts.
std::string DescribeDecoded(const v1::DecodeReport& report);

// One attempt at decoding: the sound, then clip after clip, each kept as soon as it is there. What
// is kept of an earlier attempt is not decoded again. Used once, by one thread.
class Decoding {
 public:
  // The environment must outlive it. INVALID_ARGUMENT names the field of whatever is wrong with
  // composition, latents, tiles or outputs.
  static absl::StatusOr<std::unique_ptr<Decoding>> Make(DecodingRequest request,
                                                        const JobEnvironment& environment);

  // CANCELLED where the attempt must stop, or ends behind a unit because the worker does; what was
  // decoded is kept then. NaN and infinities are decoded like any value.
  absl::StatusOr<DecodingResult> Run();

 private:
  Decoding(DecodingRequest request, const JobEnvironment& environment)
      : request_(std::move(request)), environment_(environment) {}

  absl::Status Identify();
  int32_t Units() const;
  absl::Status DecodeSound(KeptUnits* units);
  absl::Status DecodeFrames(KeptUnits* units, DecodeOutputs* outputs);
  absl::StatusOr<DecodedUnit> MakeClip(int64_t clip, h3::ClipJoiner* joiner);
  absl::Status AddFrames(const std::vector<float>& frames, DecodeOutputs* outputs);
  // Between two units.
  absl::Status BeforeUnit(int32_t unit) const;
  void Describe();

  const DecodingRequest request_;
  const JobEnvironment& environment_;
  h3::Graph video_graph_;
  h3::Graph audio_graph_;
  h3::DecoderComposition composition_;
  v1::NumericalIdentity identity_;
  v1::RunIdentity run_identity_;
  std::vector<v1::TensorDigest> inputs_;

  std::unique_ptr<h3::GraphCalls> video_calls_;
  std::unique_ptr<h3::GraphCalls> audio_calls_;
  bool video_ran_ = false;
  std::optional<h3::VideoDecoder> decoder_;
  media::VideoFormat format_;
  media::AudioTrack audio_;
  int64_t next_frame_ = 0;
  std::vector<float> pixels_;
  std::vector<uint8_t> bytes_;
  DecodingResult result_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DECODE_DECODING_H_
