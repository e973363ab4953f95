#include "kernels/cuda/rank_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace plumbline {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// What the three counts of a GPU give for these values.
std::vector<float> Found(const std::vector<float>& values, const std::vector<int64_t>& ranks) {
  RankSearch search(ranks);
  for (const int shift : {20, 10, 0}) {
    const int bins = shift == 20 ? 2048 : 1 << RankSearch::kBits;
    const std::vector<uint32_t> prefixes = search.Prefixes();
    RankSearch::Counts counts(prefixes.size() * bins);
    for (const float value : values) {
      for (size_t p = 0; p < prefixes.size(); ++p) {
        const uint32_t bits = BitsOf(value) >> shift;
        if (shift < 20 && bits >> RankSearch::kBits != prefixes[p]) continue;
        ++counts[p * bins + (bits & (bins - 1))];
      }
    }
    search.Narrow(counts, bins);
  }
  return search.Values();
}

TEST(RankSearchTest, FindsWhatSortingFinds) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const int count : {1, 2, 10, 1000}) {
    for (const bool with_ties : {false, true}) {
      std::vector<float> values(count);
      for (float& value : values) {
        value = std::fabs(normal(random)) * std::ldexp(1.0f, static_cast<int>(random() % 40) - 30);
        if (with_ties) value = random() % 3 == 0 ? 0 : std::ldexp(1.0f, std::ilogb(value));
      }
      std::vector<float> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      // Neighbours, the ends, and one rank twice.
      std::vector<int64_t> ranks = {0, count / 2, count / 2, count * 9 / 10, count - 1};
      if (count > 2) ranks.push_back(count / 2 + 1);
      std::vector<float> expected;
      for (const int64_t rank : ranks) expected.push_back(sorted[rank]);
      EXPECT_EQ(Found(values, ranks), expected) << count << (with_ties ? " with ties" : "");
    }
  }
}

TEST(RankSearchTest, TellsTheLargestFloatsAndTheLeastApart) {
  const float least = std::ldexp(1.0f, -149);
  const float most = std::nextafter(HUGE_VALF, 0.0f);
  const std::vector<float> values = {0, least, 2 * least, std::nextafter(most, 0.0f), most};
  EXPECT_EQ(Found(values, {0, 1, 2, 3, 4}), values);
}

}  // namespace
}  // namespace plumbline
