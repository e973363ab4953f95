#include "worker/lease/backoff.h"

#include <algorithm>

namespace plumbline::worker {

absl::Duration Backoff::Next() {
  const double share = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  const absl::Duration wait = next_ * share;
  next_ = std::min(next_ * 2, longest_);
  return wait;
}

}  // namespace plumbline::worker
