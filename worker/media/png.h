#ifndef PLUMBLINE_WORKER_MEDIA_PNG_H_
#define PLUMBLINE_WORKER_MEDIA_PNG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plumbline::media {

// A picture of 8-bit planes (3, height, width) as the bytes of a PNG file, in sRGB. INTERNAL with
// libpng's reason.
absl::StatusOr<std::string> EncodePng(int64_t height, int64_t width,
                                      absl::Span<const uint8_t> planes);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_PNG_H_
