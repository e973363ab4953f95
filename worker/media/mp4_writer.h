#ifndef PLUMBLINE_WORKER_MEDIA_MP4_WRITER_H_
#define PLUMBLINE_WORKER_MEDIA_MP4_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

// Writes an MP4 that browsers play: H.264 in yuv420p, limited range, with the matrix, primaries and
// transfer of BT.709 and marked so; AAC; the index in front. One thread encodes, so equal frames
// and samples give equal bytes wherever the libraries are the same. One thread calls it.
class Mp4Writer {
 public:
  // `audio` may be null or have no samples: then there is no sound. Both it and `ffmpeg` must
  // outlive the writer. INVALID_ARGUMENT for a video without frames, an odd height or width, a
  // frame rate that is not positive, more than two channels, or a sampling rate that AAC has not.
  // INTERNAL with FFmpeg's reason.
  static absl::StatusOr<std::unique_ptr<Mp4Writer>> Create(const FfmpegLibrary* ffmpeg,
                                                           const std::string& path,
                                                           const VideoFormat& format,
                                                           const AudioTrack* audio);
  virtual ~Mp4Writer() = default;

  // The next frame, as VideoFrame::bytes, and the sound up to its end.
  virtual absl::Status AddFrame(absl::Span<const uint8_t> bytes) = 0;
  // After the last frame. The file is not complete before.
  virtual absl::Status Finish() = 0;
};

// All frames of `video` and `audio`, as above.
absl::Status WriteMp4(const FfmpegLibrary* ffmpeg, const std::string& path, FrameSource* video,
                      const AudioTrack* audio);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_MP4_WRITER_H_
