#include "worker/media/png.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::media {
namespace {

TEST(PngTest, IsLossless) {
  // Three planes.
  std::vector<uint8_t> frame(3 * 5 * 7);
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(37 * i);
  const absl::StatusOr<std::string> encoded = EncodePng(5, 7, frame);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&image, encoded->data(), encoded->size()), 0);
  ASSERT_EQ(image.width, 7u);
  ASSERT_EQ(image.height, 5u);
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(3 * 5 * 7);
  ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0);
  for (size_t i = 0; i < 35; ++i) {
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(pixels[3 * i + c], frame[c * 35 + i]);
  }
}

}  // namespace
}  // namespace plumbline::media
