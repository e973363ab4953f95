#ifndef PLUMBLINE_WORKER_HEALTH_SERVER_H_
#define PLUMBLINE_WORKER_HEALTH_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace plumbline::worker {

// The worker's own gRPC port: grpc.health.v1, where the empty service name is liveness and
// "readiness" is readiness, and reflection. Any thread may call.
class HealthServer {
 public:
  // Listens on `address`, "HOST:PORT"; port 0 takes a free one. UNAVAILABLE if it cannot be
  // listened on. One in a process.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(const std::string& address);
  ~HealthServer();  // Stops.
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  int port() const;
  void SetReady(bool ready);

 private:
  class Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_HEALTH_SERVER_H_
