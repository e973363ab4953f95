#include "worker/media/png.h"

#include <png.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/media/frame_order.h"

namespace plumbline::media {

absl::StatusOr<std::string> EncodePng(int64_t height, int64_t width,
                                      absl::Span<const uint8_t> planes) {
  if (height < 1 || width < 1 || planes.size() != static_cast<size_t>(3 * height * width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture of ", width, "x", height, " from ", planes.size(), " bytes"));
  }
  std::vector<uint8_t> pixels(planes.size());
  PlanesToPixels(planes, absl::MakeSpan(pixels));
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  std::string encoded(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = encoded.size();
  if (png_image_write_to_memory(&image, encoded.data(), &size, /*convert_to_8_bit=*/0,
                                pixels.data(), /*row_stride=*/0, /*colormap=*/nullptr) == 0) {
    return absl::InternalError(absl::StrCat("PNG: ", image.message));
  }
  encoded.resize(size);
  return encoded;
}

}  // namespace plumbline::media
