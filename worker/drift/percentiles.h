#ifndef PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_
#define PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/thread_pool.h"

namespace plumbline::drift {

// For each of `fractions`, in [0, 1], the value that far along the way through the sorted values,
// between two ranks by linear interpolation. `values`, of which there must be one, are neither
// negative nor NaN. Exact, in two passes over the values whatever their number.
std::vector<double> Percentiles(absl::Span<const float> values, absl::Span<const double> fractions,
                                ThreadPool& threads);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_PERCENTILES_H_
