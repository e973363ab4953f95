#ifndef PLUMBLINE_COMMON_METRICS_H_
#define PLUMBLINE_COMMON_METRICS_H_

#include <memory>
#include <string>

namespace prometheus {
class Registry;
}  // namespace prometheus

namespace plumbline {

// The metrics of one daemon. Its parts register prometheus::Counter, Gauge and Histogram families
// with registry(), named plumbline_..., in base units, counters ending in _total, without labels
// whose values a request can choose. Any thread may call.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  prometheus::Registry& registry() { return *registry_; }

  // All metrics in Prometheus' text format, version 0.0.4.
  std::string Serialize() const;

 private:
  const std::unique_ptr<prometheus::Registry> registry_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_METRICS_H_
