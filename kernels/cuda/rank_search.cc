#include "kernels/cuda/rank_search.h"

#include <algorithm>
#include <cstring>

namespace plumbline {

RankSearch::RankSearch(absl::Span<const int64_t> ranks) {
  for (const int64_t rank : ranks) wanted_.push_back({0, rank});
}

std::vector<uint32_t> RankSearch::Prefixes() const {
  std::vector<uint32_t> prefixes;
  for (const Wanted& each : wanted_) prefixes.push_back(each.prefix);
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  return prefixes;
}

void RankSearch::Narrow(const Counts& counts, int bins) {
  const std::vector<uint32_t> prefixes = Prefixes();
  for (Wanted& each : wanted_) {
    const auto place = std::lower_bound(prefixes.begin(), prefixes.end(), each.prefix);
    const unsigned long long* const own = counts.data() + (place - prefixes.begin()) * bins;
    uint32_t bin = 0;
    while (bin + 1 < static_cast<uint32_t>(bins) && each.rank >= static_cast<int64_t>(own[bin])) {
      each.rank -= static_cast<int64_t>(own[bin++]);
    }
    each.prefix = each.prefix << kBits | bin;
  }
}

std::vector<float> RankSearch::Values() const {
  std::vector<float> values(wanted_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&values[i], &wanted_[i].prefix, sizeof(float));
  }
  return values;
}

}  // namespace plumbline
