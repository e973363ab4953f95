#include "worker/drift/percentiles.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

namespace plumbline::drift {
namespace {

// The bits of non-negative floats are in the order of their values: a value's upper half is its
// bin, its lower half its place in the bin.
constexpr int kHalfBits = 16;
constexpr size_t kBins = size_t{1} << kHalfBits;
constexpr int64_t kGrain = 1 << 16;

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float ValueOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

using Counts = std::vector<int64_t>;

// Sum over all values of count(bits, &counts), which adds to one of `size` counts.
template <typename Count>
Counts CountAll(absl::Span<const float> values, size_t size, ThreadPool& threads,
                const Count& count) {
  std::vector<Counts> of_slots(static_cast<size_t>(threads.num_threads()));
  threads.ParallelForWithSlot(0, static_cast<int64_t>(values.size()), kGrain,
                              [&](int64_t first, int64_t last, int slot) {
                                Counts& counts = of_slots[static_cast<size_t>(slot)];
                                counts.resize(size);
                                for (int64_t i = first; i < last; ++i) {
                                  count(BitsOf(values[static_cast<size_t>(i)]), counts);
                                }
                              });
  Counts sum(size);
  for (const Counts& counts : of_slots) {
    for (size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
  }
  return sum;
}

// The index of the count that holds the value of rank `*rank`; *rank becomes its rank among those.
size_t Locate(absl::Span<const int64_t> counts, int64_t* rank) {
  size_t index = 0;
  while (*rank >= counts[index]) *rank -= counts[index++];
  return index;
}

}  // namespace

std::vector<int64_t> PercentileRanks(int64_t count, absl::Span<const double> fractions) {
  const int64_t last_rank = count - 1;
  std::set<int64_t> ranks;
  for (double fraction : fractions) {
    const int64_t rank = static_cast<int64_t>(fraction * static_cast<double>(last_rank));
    ranks.insert(rank);
    ranks.insert(std::min(rank + 1, last_rank));
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<double> InterpolatePercentiles(int64_t count, absl::Span<const double> fractions,
                                           const std::map<int64_t, float>& by_rank) {
  const int64_t last_rank = count - 1;
  std::vector<double> percentiles;
  for (double fraction : fractions) {
    const double position = fraction * static_cast<double>(last_rank);
    const int64_t rank = static_cast<int64_t>(position);
    double value = by_rank.at(rank);
    if (rank < last_rank) {
      value += (position - static_cast<double>(rank)) * (by_rank.at(rank + 1) - value);
    }
    percentiles.push_back(value);
  }
  return percentiles;
}

std::vector<double> Percentiles(absl::Span<const float> values, absl::Span<const double> fractions,
                                ThreadPool& threads) {
  const int64_t count = static_cast<int64_t>(values.size());
  std::map<int64_t, float> by_rank;
  for (const int64_t rank : PercentileRanks(count, fractions)) by_rank[rank] = 0;

  const Counts bins = CountAll(values, kBins, threads,
                               [](uint32_t bits, Counts& counts) { ++counts[bits >> kHalfBits]; });
  // The bins that a wanted rank lies in, numbered from 1.
  std::vector<uint8_t> number_of(kBins);
  size_t numbers = 0;
  for (const auto& [rank, value] : by_rank) {
    int64_t rest = rank;
    uint8_t& number = number_of[Locate(bins, &rest)];
    if (number == 0) number = static_cast<uint8_t>(++numbers);
  }
  const Counts places =
      CountAll(values, numbers * kBins, threads, [&](uint32_t bits, Counts& counts) {
        const size_t number = number_of[bits >> kHalfBits];
        if (number > 0) ++counts[(number - 1) * kBins + bits % kBins];
      });
  for (auto& [rank, value] : by_rank) {
    int64_t rest = rank;
    const size_t bin = Locate(bins, &rest);
    const auto of_bin = absl::MakeSpan(places).subspan((number_of[bin] - size_t{1}) * kBins, kBins);
    value = ValueOf(static_cast<uint32_t>(bin << kHalfBits | Locate(of_bin, &rest)));
  }

  return InterpolatePercentiles(count, fractions, by_rank);
}

}  // namespace plumbline::drift
