// Frames as planes, one a channel, and as pixels, their channels side by side.
#ifndef PLUMBLINE_WORKER_MEDIA_FRAME_ORDER_H_
#define PLUMBLINE_WORKER_MEDIA_FRAME_ORDER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace plumbline::media {

// (3, pixels) to (pixels, 3), and back. Both spans hold 3 * pixels values.
void PlanesToPixels(absl::Span<const float> planes, absl::Span<float> pixels);
void PlanesToPixels(absl::Span<const uint8_t> planes, absl::Span<uint8_t> pixels);
void PixelsToPlanes(absl::Span<const float> pixels, absl::Span<float> planes);
void PixelsToPlanes(absl::Span<const uint8_t> pixels, absl::Span<uint8_t> planes);

// ToByte() of each value.
void ToBytes(absl::Span<const float> values, absl::Span<uint8_t> bytes);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_FRAME_ORDER_H_
