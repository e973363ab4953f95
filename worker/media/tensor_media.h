// Media as safetensors: exactly what was decoded, to measure; and 8-bit frames kept small, for the
// MP4 to be made of elsewhere. docs/formats.md describes both.
#ifndef PLUMBLINE_WORKER_MEDIA_TENSOR_MEDIA_H_
#define PLUMBLINE_WORKER_MEDIA_TENSOR_MEDIA_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/safetensors_writer.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

struct TensorMediaOptions {
  bool frames = true;
  // Otherwise float32.
  bool frames_u8 = false;
  // Also what the decoder gave before scaling and clamping, `decoded`.
  bool decoded = false;
};

// Writes `frames` (frames, height, width, 3), `decoded` (1, 3, frames, height, width) and
// `samples` (channels, samples), those that there are, frame after frame. One thread.
class TensorMediaWriter {
 public:
  // No video where `video` is null, no sound where `audio` is null or empty; `audio` must outlive
  // the writer.
  static absl::StatusOr<TensorMediaWriter> Create(const std::string& path,
                                                  const TensorMediaOptions& options,
                                                  const VideoFormat* video,
                                                  const AudioTrack* audio);

  // The next frame; `decoded`, where it was asked for, in the order of its values.
  // INVALID_ARGUMENT for float32 frames without values.
  absl::Status AddFrame(const VideoFrame& frame, absl::Span<const float> decoded = {});

  // The file appears. FAILED_PRECONDITION if a frame is missing.
  absl::Status Finish();

 private:
  TensorMediaWriter(SafetensorsWriter file, const TensorMediaOptions& options,
                    const VideoFormat& video, const AudioTrack* audio)
      : file_(std::move(file)), options_(options), video_(video), audio_(audio) {}

  SafetensorsWriter file_;
  TensorMediaOptions options_;
  VideoFormat video_;
  const AudioTrack* audio_;
  int64_t next_ = 0;
  std::vector<float> interleaved_;
  std::vector<uint8_t> interleaved_bytes_;
};

// What every tensor of a safetensors file is, by its bytes, sorted by name.
absl::StatusOr<std::vector<v1::TensorDigest>> DigestTensors(const std::string& path);

// Keeps the 8 bits of a video, each frame compressed by itself, and its sound: what an MP4 is made
// of. Equal frames give equal bytes. One thread.
class KeptFramesWriter {
 public:
  // A file named PATH.frames is there until the writer ends. `audio` may be null and must outlive
  // it.
  static absl::StatusOr<KeptFramesWriter> Create(const std::string& path, const VideoFormat& video,
                                                 const AudioTrack* audio);
  KeptFramesWriter(KeptFramesWriter&& other) noexcept = default;

  absl::Status AddFrame(const VideoFrame& frame);
  absl::Status Finish();

 private:
  struct Remover {
    std::string path;
    void operator()(std::FILE* file) const;
  };
  using TemporaryFile = std::unique_ptr<std::FILE, Remover>;

  KeptFramesWriter(std::string path, TemporaryFile file, const VideoFormat& video,
                   const AudioTrack* audio)
      : path_(std::move(path)), file_(std::move(file)), video_(video), audio_(audio) {}

  std::string path_;
  TemporaryFile file_;
  VideoFormat video_;
  const AudioTrack* audio_;
  std::vector<char> compressed_;
  std::vector<int64_t> ends_;  // Of the frames, in bytes of the file.
};

// Media that were opened: a picture, a sound, or both.
struct Media {
  std::unique_ptr<FrameSource> video;  // Null: there is none.
  AudioTrack audio;                    // No channels: there is none.
};

// Reads what either of the writers wrote; the frame rate is 24 and the sampling rate 32000 where
// metadata name no other. Takes the memory of one frame. INVALID_ARGUMENT, naming the file and the
// tensor, for a file that holds neither frames nor samples, and for wrong shapes, types or sizes;
// frames that cannot be decompressed end the source with the like.
absl::StatusOr<Media> OpenTensorMedia(const std::string& path);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_TENSOR_MEDIA_H_
