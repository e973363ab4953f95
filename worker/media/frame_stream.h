// Decoded media between who makes them (the decoders, a file that was kept) and who writes or
// measures them. Frames are pulled one at a time, so that two videos can be read in step and no
// one ever holds a whole one.
#ifndef PLUMBLINE_WORKER_MEDIA_FRAME_STREAM_H_
#define PLUMBLINE_WORKER_MEDIA_FRAME_STREAM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plumbline::media {

// All frames of a video are of one size and equally far apart.
struct VideoFormat {
  int64_t frames = 0;
  int64_t height = 0;  // Pixels.
  int64_t width = 0;   // Pixels.
  double frames_per_second = 0;

  int64_t ValuesPerFrame() const { return 3 * height * width; }
};

// One frame, planes of red, green and blue one after another: (3, height, width), row-major,
// without gaps.
struct VideoFrame {
  int64_t index = 0;  // From 0.
  // float32 in [0, 1], or NaN where the decoder made one; empty where only 8 bits were kept.
  absl::Span<const float> values;
  // The same in 8 bits, ToByte() of each value. Never empty.
  absl::Span<const uint8_t> bytes;
};

// 8 bits of a value in [0, 1]: 255 times the value in float32, rounded to the nearest whole number,
// ties to even, as diffusers' image processor does. NaN becomes 0, values beyond the range its end.
inline uint8_t ToByte(float value) {
  if (!(value > 0)) return 0;
  return static_cast<uint8_t>(std::nearbyint(std::min(value, 1.0f) * 255.0f));
}

// A video, frame after frame. One thread at a time.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  virtual const VideoFormat& format() const = 0;
  // Whether frames have `values` beside `bytes`.
  virtual bool HasValues() const = 0;
  // The next frame, whose spans are valid until the next call. OUT_OF_RANGE
  // behind the last one; any other error is the source's and ends the stream.
  virtual absl::StatusOr<VideoFrame> Next() = 0;
};

// A soundtrack as a whole: some megabytes at most.
struct AudioTrack {
  int32_t sample_rate_hz = 0;
  int64_t channels = 0;        // 2: left, right.
  std::vector<float> samples;  // (channels, samples of one channel), in [-1, 1].

  int64_t SamplesPerChannel() const {
    return channels == 0 ? 0 : static_cast<int64_t>(samples.size()) / channels;
  }
  absl::Span<const float> Channel(int64_t channel) const {
    return absl::MakeConstSpan(samples).subspan(static_cast<size_t>(channel * SamplesPerChannel()),
                                                static_cast<size_t>(SamplesPerChannel()));
  }
};

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_FRAME_STREAM_H_
