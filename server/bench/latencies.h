#ifndef PLUMBLINE_SERVER_BENCH_LATENCIES_H_
#define PLUMBLINE_SERVER_BENCH_LATENCIES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "absl/time/time.h"

namespace plumbline::server {

// Latencies of one kind of call. Any thread may Add.
class Latencies {
 public:
  explicit Latencies(size_t most) : seconds_(most) {}
  void Add(absl::Duration latency) {
    const size_t index = count_++;
    if (index < seconds_.size()) seconds_[index] = absl::ToDoubleSeconds(latency);
  }
  // In milliseconds; once all are added.
  double At(double quantile) const {
    std::vector<double> all(
        seconds_.begin(),
        seconds_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(count_, seconds_.size())));
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return 1e3 * all[static_cast<size_t>(quantile * static_cast<double>(all.size() - 1))];
  }
  void Print(const char* what) const {
    std::printf("  %-22s %7zu calls   p50 %6.1f ms   p99 %6.1f ms   max %6.1f ms\n", what, count(),
                At(0.5), At(0.99), At(1));
  }
  size_t count() const { return count_; }

 private:
  std::vector<double> seconds_;
  std::atomic<size_t> count_{0};
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_BENCH_LATENCIES_H_
