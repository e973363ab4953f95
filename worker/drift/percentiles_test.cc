#include "worker/drift/percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plumbline::drift {
namespace {

constexpr double kFractions[] = {0, 0.5, 0.9, 0.99, 0.999, 1};

// By sorting.
double Expected(const std::vector<float>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const size_t rank = static_cast<size_t>(position);
  const double low = sorted[rank];
  if (rank + 1 == sorted.size()) return low;
  return low + (position - static_cast<double>(rank)) * (sorted[rank + 1] - low);
}

void ExpectSorted(std::vector<float> values) {
  ThreadPool threads(3);
  const std::vector<double> percentiles = Percentiles(values, kFractions, threads);
  std::sort(values.begin(), values.end());
  ASSERT_EQ(percentiles.size(), std::size(kFractions));
  for (size_t i = 0; i < percentiles.size(); ++i) {
    EXPECT_EQ(percentiles[i], Expected(values, kFractions[i]))
        << values.size() << " values, fraction " << kFractions[i];
  }
}

TEST(PercentilesTest, AreThoseOfTheSortedValues) {
  constexpr unsigned kSeed = 1;
  RecordProperty("seed", kSeed);
  std::mt19937 generator(kSeed);
  for (size_t size : {1, 2, 3, 10, 1000, 300001}) {
    std::vector<float> wide(size), narrow(size), few(size);
    for (size_t i = 0; i < size; ++i) {
      wide[i] =
          std::ldexp(static_cast<float>(generator() % 1000003), static_cast<int>(i % 200) - 140);
      narrow[i] = 1.0f + std::ldexp(static_cast<float>(generator() % 4096), -23);
      few[i] = static_cast<float>(generator() % 3);
    }
    ExpectSorted(wide);
    ExpectSorted(narrow);
    ExpectSorted(few);
  }
}

TEST(PercentilesTest, TakeWhatFloatsHave) { ExpectSorted({0.0f, 1e-45f, 3e38f, INFINITY, 0.0f}); }

}  // namespace
}  // namespace plumbline::drift
