#ifndef PLUMBLINE_KERNELS_CUDA_RANK_SEARCH_H_
#define PLUMBLINE_KERNELS_CUDA_RANK_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plumbline {

// Finds which non-negative float32 values have given ranks, by counts of their bits from the upper
// ones down: the bits of such floats are in the order of their values. Not thread-safe.
class RankSearch {
 public:
  // Of each count but the first, which takes the bits that these leave.
  static constexpr int kBits = 10;
  using Counts = std::vector<unsigned long long>;

  // A rank: how many other values come before, 0 and up.
  explicit RankSearch(absl::Span<const int64_t> ranks);

  // The bits that the wanted values are known to begin with, ascending, each once.
  std::vector<uint32_t> Prefixes() const;

  // Goes on with how many values have each of the next bits: `bins` counts for each of Prefixes(),
  // one prefix after the other.
  void Narrow(const Counts& counts, int bins);

  // By rank, in the order of the ranks; once all 32 bits are known.
  std::vector<float> Values() const;

 private:
  struct Wanted {
    uint32_t prefix;
    int64_t rank;  // among the values with this prefix
  };

  std::vector<Wanted> wanted_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_RANK_SEARCH_H_
