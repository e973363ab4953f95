// What of a media file is read at most, whoever made it: no allocation goes by a size beyond these.
#ifndef PLUMBLINE_WORKER_MEDIA_LIMITS_H_
#define PLUMBLINE_WORKER_MEDIA_LIMITS_H_

#include <cstdint>

namespace plumbline::media {

inline constexpr int64_t kMaxFrameSide = 1 << 14;    // Pixels.
inline constexpr int64_t kMaxFramePixels = 1 << 25;  // 7680 x 4320 fits.
inline constexpr int64_t kMaxSamples = 1 << 26;      // Of a channel.
inline constexpr int32_t kMaxSampleRateHz = 384000;

// Whether frames of that size are read.
inline bool IsReadableFrameSize(int64_t height, int64_t width) {
  return height >= 1 && height <= kMaxFrameSide && width >= 1 && width <= kMaxFrameSide &&
         height * width <= kMaxFramePixels;
}

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_LIMITS_H_
