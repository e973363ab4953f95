#ifndef PLUMBLINE_SERVER_HEALTH_WATCH_H_
#define PLUMBLINE_SERVER_HEALTH_WATCH_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::server {

// A thread that asks `ready` every second and tells `tell` when the answer is another one,
// beginning with the first. So that grpc.health.v1, which has to be told, says what /readyz finds
// when it is asked. By the machine's own clock: so does whoever probes.
class HealthWatch {
 public:
  HealthWatch(std::function<bool()> ready, std::function<void(bool)> tell);
  ~HealthWatch();  // Ends it; `tell` is not called afterwards.
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

 private:
  void Run();

  const std::function<bool()> ready_;
  const std::function<void(bool)> tell_;
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HEALTH_WATCH_H_
