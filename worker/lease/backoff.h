#ifndef PLUMBLINE_WORKER_LEASE_BACKOFF_H_
#define PLUMBLINE_WORKER_LEASE_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace plumbline::worker {

// How long to wait before each further try of something that failed: twice as long each time, up
// to `longest`, of which a random half is taken off, so that the workers of a cluster do not come
// back to a restarted coordinator all at once. One thread at a time.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest, uint64_t seed)
      : first_(first), longest_(longest), next_(first), random_(seed) {}

  absl::Duration Next();
  // It worked: the next failure is a first one.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration longest_;
  absl::Duration next_;
  std::mt19937_64 random_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_BACKOFF_H_
