#include "worker/media/frame_order.h"

#include <cstddef>

#include "worker/media/frame_stream.h"

namespace plumbline::media {
namespace {

template <typename T>
void Interleave(absl::Span<const T> planes, absl::Span<T> pixels) {
  const size_t count = planes.size() / 3;
  const T* const red = planes.data();
  const T* const green = red + count;
  const T* const blue = green + count;
  T* const out = pixels.data();
  for (size_t i = 0; i < count; ++i) {
    out[3 * i] = red[i];
    out[3 * i + 1] = green[i];
    out[3 * i + 2] = blue[i];
  }
}

template <typename T>
void Separate(absl::Span<const T> pixels, absl::Span<T> planes) {
  const size_t count = pixels.size() / 3;
  const T* const in = pixels.data();
  T* const red = planes.data();
  T* const green = red + count;
  T* const blue = green + count;
  for (size_t i = 0; i < count; ++i) {
    red[i] = in[3 * i];
    green[i] = in[3 * i + 1];
    blue[i] = in[3 * i + 2];
  }
}

}  // namespace

void PlanesToPixels(absl::Span<const float> planes, absl::Span<float> pixels) {
  Interleave(planes, pixels);
}
void PlanesToPixels(absl::Span<const uint8_t> planes, absl::Span<uint8_t> pixels) {
  Interleave(planes, pixels);
}
void PixelsToPlanes(absl::Span<const float> pixels, absl::Span<float> planes) {
  Separate(pixels, planes);
}
void PixelsToPlanes(absl::Span<const uint8_t> pixels, absl::Span<uint8_t> planes) {
  Separate(pixels, planes);
}

void ToBytes(absl::Span<const float> values, absl::Span<uint8_t> bytes) {
  const float* const in = values.data();
  uint8_t* const out = bytes.data();
  for (size_t i = 0; i < values.size(); ++i) out[i] = ToByte(in[i]);
}

}  // namespace plumbline::media
