#include "worker/h3/latent_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;

std::vector<float> Counting(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// Written out: 2 channels, 2 frames of 2 x 4 latents, which are 2 rows each.
TEST(LatentRowsTest, PatchifyOrder) {
  const std::vector<float> latents = Counting(32);
  std::vector<float> rows(32);
  Patchify({2, 2, 2, 4}, latents, absl::MakeSpan(rows));
  // Channel 0 is 0 to 15 and channel 1 is 16 to 31; the second frame begins 8 further on.
  EXPECT_THAT(rows, ElementsAre(0, 1, 4, 5, 16, 17, 20, 21,    //
                                2, 3, 6, 7, 18, 19, 22, 23,    //
                                8, 9, 12, 13, 24, 25, 28, 29,  //
                                10, 11, 14, 15, 26, 27, 30, 31));
}

TEST(LatentRowsTest, UnpatchifyIsTheInverse) {
  const VideoLatentShape shape = {3, 5, 6, 4};
  const std::vector<float> latents = Counting(shape.NumElements());
  std::vector<float> rows(latents.size()), back(latents.size());
  Patchify(shape, latents, absl::MakeSpan(rows));
  EXPECT_NE(rows, latents);
  Unpatchify(shape, rows, absl::MakeSpan(back));
  EXPECT_EQ(back, latents);
}

TEST(LatentRowsTest, UnpackAudioRowsTransposesEachChannel) {
  std::vector<float> latents(12);
  UnpackAudioRows(3, 2, Counting(12), absl::MakeSpan(latents));
  EXPECT_THAT(latents, ElementsAre(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
}

}  // namespace
}  // namespace plumbline::h3
