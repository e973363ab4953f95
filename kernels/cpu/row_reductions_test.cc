#include "kernels/cpu/row_reductions.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plumbline {
namespace {

// The documented order, written plainly.
template <typename Accumulator>
Accumulator DotByDefinition(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<Accumulator> lanes(32, 0);
  for (size_t i = 0; i < a.size(); ++i)
    lanes[i % 32] = std::fma(Accumulator{a[i]}, Accumulator{b[i]}, lanes[i % 32]);
  for (const size_t half : {16, 8, 4, 2, 1})
    for (size_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
  return lanes[0];
}

TEST(RowReductions, FollowTheDocumentedOrder) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const int64_t size : {0, 1, 31, 32, 33, 96, 128, 1000, 5376}) {
    std::vector<float> a(static_cast<size_t>(size));
    std::vector<float> b(a.size());
    const std::vector<float> ones(a.size(), 1.0f);
    for (float& value : a) value = normal(random);
    for (float& value : b) value = normal(random);
    EXPECT_EQ(RowDot(a.data(), b.data(), size), DotByDefinition<float>(a, b));
    EXPECT_EQ(RowDot<double>(a.data(), b.data(), size), DotByDefinition<double>(a, b));
    EXPECT_EQ(RowSumOfSquares(a.data(), size), DotByDefinition<float>(a, a));
    EXPECT_EQ(RowSum(a.data(), size), DotByDefinition<float>(a, ones));
    EXPECT_EQ(RowSum<double>(a.data(), size), DotByDefinition<double>(a, ones));
  }
}

}  // namespace
}  // namespace plumbline
