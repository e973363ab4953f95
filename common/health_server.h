#ifndef PLUMBLINE_COMMON_HEALTH_SERVER_H_
#define PLUMBLINE_COMMON_HEALTH_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// A gRPC port that tells how a daemon is and nothing else: grpc.health.v1, where the empty service
// name and "liveness" are liveness and "readiness" is readiness, and reflection. Without TLS, since
// a cluster's own probes speak none. Any thread may call.
class HealthServer {
 public:
  // Listens on `address`, "HOST:PORT"; port 0 takes a free one. INVALID_ARGUMENT naming `field` for
  // what is no address; UNAVAILABLE if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(const std::string& address,
                                                             absl::string_view field);
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

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_HEALTH_SERVER_H_
