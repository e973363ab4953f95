#ifndef PLUMBLINE_WORKER_JOBS_DECODE_OUTPUTS_H_
#define PLUMBLINE_WORKER_JOBS_DECODE_OUTPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "worker/jobs/job.h"
#include "worker/media/frame_stream.h"
#include "worker/media/mp4_writer.h"
#include "worker/media/tensor_media.h"

namespace plumbline::jobs {

// What is made of decoded frames and samples.
struct OutputRequest {
  std::vector<v1::ArtifactRole> roles;  // FRAMES, VIDEO, AUDIO, IMAGE.
  media::TensorMediaOptions frames;     // Of FRAMES.
  std::optional<int64_t> image_frame;   // Of IMAGE; none: the middle one.
  // Names of files end with it: "frames" + "-42" + ".safetensors".
  std::string suffix;
};

// Writes the files, a frame at a time. Without FFmpeg a VIDEO becomes KEPT_FRAMES, of which the MP4
// is made elsewhere. One thread.
class DecodeOutputs {
 public:
  // `video` may be null, `audio` may be empty; both and the environment must outlive it.
  // INVALID_ARGUMENT on "decode.outputs" or "decode.image_frame" for an output of what is not
  // decoded.
  static absl::StatusOr<std::unique_ptr<DecodeOutputs>> Create(const OutputRequest& request,
                                                               const media::VideoFormat* video,
                                                               const media::AudioTrack& audio,
                                                               const JobEnvironment& environment);

  // The next frame, and its values as the decoder gave them.
  absl::Status AddFrame(const media::VideoFrame& frame, absl::Span<const float> decoded);

  // Behind the last frame: the files.
  absl::StatusOr<std::vector<OutputFile>> Finish();

  // Whether an MP4 was asked for and is still to be made.
  bool media_pending() const { return kept_.has_value(); }
  // The file of FRAMES; empty: none was asked for.
  const std::string& frames_path() const { return frames_path_; }

 private:
  DecodeOutputs(const OutputRequest& request, const media::AudioTrack& audio,
                const JobEnvironment& environment)
      : request_(request), audio_(audio), folder_(environment.output_folder) {}

  std::string Path(absl::string_view name) const;
  void AddFile(absl::string_view name, absl::string_view extension, v1::ArtifactRole role,
               absl::string_view media_type);

  const OutputRequest request_;
  const media::AudioTrack& audio_;
  const std::string folder_;
  media::VideoFormat format_;
  int64_t image_frame_ = -1;
  std::string frames_path_;
  std::optional<media::TensorMediaWriter> frames_;
  std::unique_ptr<media::Mp4Writer> mp4_;
  std::optional<media::KeptFramesWriter> kept_;
  bool writes_audio_ = false;
  std::vector<OutputFile> files_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DECODE_OUTPUTS_H_
