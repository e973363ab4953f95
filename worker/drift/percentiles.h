#ifndef PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_
#define PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/thread_pool.h"

namespace plumbline::drift {

// The ranks, from 0 and in rising order, that percentiles of `count` values (at least one) lie
// between.
std::vector<int64_t> PercentileRanks(int64_t count, absl::Span<const double> fractions);

// The percentiles, given the values of those ranks.
std::vector<double> InterpolatePercentiles(int64_t count, absl::Span<const double> fractions,
                                           const std::map<int64_t, float>& by_rank);

// For each of `fractions`, in [0, 1], the value that far along the way through the sorted values,
// between two ranks by linear interpolation. `values`, of which there must be one, are neither
// negative nor NaN. Exact, in two passes over the values whatever their number.
std::vector<double> Percentiles(absl::Span<const float> values, absl::Span<const double> fractions,
                                ThreadPool& threads);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_
