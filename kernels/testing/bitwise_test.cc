#include "kernels/testing/bitwise.h"

#include <gmock/gmock.h>

#include <vector>

namespace plumbline {
namespace {

using ::testing::HasSubstr;

TEST(BitwiseEqual, AcceptsEqualBytesUnderOtherStrides) {
  std::vector<float> dense = {1, 2, 3, 4};
  std::vector<float> apart = {1, 2, -9, 3, 4, -9};
  Tensor strided = Tensor::Dense(apart.data(), DType::kF32, 1, 2, 2);
  strided.row_stride = 3;
  EXPECT_TRUE(BitwiseEqual(Tensor::Dense(dense.data(), DType::kF32, 1, 2, 2), strided));
}

TEST(BitwiseEqual, NamesTheFirstDifferenceAndCountsAll) {
  std::vector<float> a = {1, 2, 3, 0.0f};
  std::vector<float> b = {1, 2, 3.5f, -0.0f};
  const testing::AssertionResult result = BitwiseEqual(
      Tensor::Dense(a.data(), DType::kF32, 1, 2, 2), Tensor::Dense(b.data(), DType::kF32, 1, 2, 2));
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("2 of 4 values"));
  EXPECT_THAT(result.message(),
              HasSubstr("(0, 1, 0): expected 3 (0x40400000), got 3.5 (0x40600000)"));
}

TEST(BitwiseEqual, RefusesOtherShapesAndTypes) {
  std::vector<float> a = {1, 2};
  EXPECT_FALSE(BitwiseEqual(Tensor::Dense(a.data(), DType::kF32, 1, 1, 2),
                            Tensor::Dense(a.data(), DType::kF32, 1, 2, 1)));
  EXPECT_FALSE(BitwiseEqual(Tensor::Dense(a.data(), DType::kF32, 1, 1, 2),
                            Tensor::Dense(a.data(), DType::kI32, 1, 1, 2)));
}

}  // namespace
}  // namespace plumbline
