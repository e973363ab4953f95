#include "worker/jobs/generation/preview.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <random>
#include <vector>

namespace plumbline::jobs {
namespace {

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // (height, width, 3)
};

Picture Decode(const std::string& bytes) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  Picture picture;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) return picture;
  image.format = PNG_FORMAT_RGB;
  picture.height = image.height;
  picture.width = image.width;
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr), 0);
  return picture;
}

TEST(PreviewTest, ShowsThreeCombinationsOfTheMiddleFramesChannels) {
  const h3::VideoLatentShape shape = {24, 5, 4, 6};
  std::vector<float> latents(static_cast<size_t>(shape.NumElements()));
  // In the middle frame one latent that is the third vector of the cosine basis, twice its length.
  for (int64_t c = 0; c < 24; ++c) {
    latents[static_cast<size_t>(((c * 5 + 2) * 4 + 1) * 6 + 3)] =
        static_cast<float>(2 * std::sqrt(2.0 / 24) * std::cos(M_PI * 2 * (c + 0.5) / 24));
  }
  std::vector<float> rows(latents.size());
  h3::Patchify(shape, latents, absl::MakeSpan(rows));
  const absl::StatusOr<std::string> preview = LatentPreview(shape, rows);
  ASSERT_TRUE(preview.ok()) << preview.status();
  const Picture picture = Decode(*preview);
  ASSERT_EQ(picture.height, 4);
  ASSERT_EQ(picture.width, 6);
  for (int64_t i = 0; i < 24; ++i) {
    for (int64_t component = 0; component < 3; ++component) {
      const bool is_set = i == 9 && component == 1;
      EXPECT_NEAR(picture.pixels[static_cast<size_t>(3 * i + component)],
                  255 * (is_set ? 0.5 + 0.2 * 2 : 0.5), 1)
          << i << ", " << component;
    }
  }
}

TEST(PreviewTest, FitsItsLimitWhateverTheSize) {
  // The released latents, and larger ones than any.
  for (const auto& [height, width] : {std::pair(48, 84), std::pair(400, 300)}) {
    const h3::VideoLatentShape shape = {24, 1, height, width};
    std::vector<float> rows(static_cast<size_t>(shape.NumElements()));
    std::mt19937 random(1);
    std::normal_distribution<float> noise;
    for (float& value : rows) value = noise(random);
    const absl::StatusOr<std::string> preview = LatentPreview(shape, rows);
    ASSERT_TRUE(preview.ok()) << preview.status();
    EXPECT_LE(preview->size(), kMaxPreviewBytes);
    const Picture picture = Decode(*preview);
    EXPECT_EQ(picture.height, height == 48 ? 48 : 134);
    EXPECT_EQ(picture.width, width == 84 ? 84 : 100);
  }
}

}  // namespace
}  // namespace plumbline::jobs
