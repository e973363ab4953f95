#ifndef PLUMBLINE_SERVER_METRICS_SERVER_METRICS_H_
#define PLUMBLINE_SERVER_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/metrics.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {

// What the coordinator measures about itself. Any thread may call.
class ServerMetrics {
 public:
  explicit ServerMetrics(Metrics* metrics);
  ~ServerMetrics();

  // `code`: a gRPC status code's name. `method`: of the API, never a caller's text.
  void RecordCall(absl::string_view method, absl::string_view code, absl::Duration duration);
  void RecordStoreWrite(absl::Duration duration, int sets);
  void RecordAttempt(absl::Duration duration);
  void RecordStep(v1::StepOrigin origin, absl::Duration duration);
  void RecordStepWrite(absl::Duration duration, int64_t bytes);

  // Sets what is counted elsewhere, before it is read.
  void SetScheduler(const SchedulerCounts& counts, const SchedulerLoad& load, absl::Time now);
  void SetWatchers(int64_t watchers);
  // Connections to the HTTP port closed for what their address has already.
  void SetRefusedConnections(int64_t total);
  void SetStepBytes(int64_t bytes);
  void SetStore(int64_t bytes, bool healthy);

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_METRICS_SERVER_METRICS_H_
