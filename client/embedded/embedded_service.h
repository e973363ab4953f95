#ifndef PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_SERVICE_H_
#define PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_SERVICE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/embedded/state_folder.h"

namespace plumbline::client {

// A coordinator, and a worker for it, in this process: the same code as in the daemons. The worker
// opens whatever files the user can.
class EmbeddedService {
 public:
  // Serves on the socket of `folder`, whose lock this process holds and which must outlive the
  // service. `device` is the worker's, as worker::DeviceOptions says; without one there is no
  // worker. The log goes to a file in the folder.
  static absl::StatusOr<std::unique_ptr<EmbeddedService>> Start(
      const StateFolder& folder, const std::optional<std::string>& device);

  ~EmbeddedService();  // The worker hands its task back; then the coordinator ends.
  EmbeddedService(const EmbeddedService&) = delete;
  EmbeddedService& operator=(const EmbeddedService&) = delete;

 private:
  class Impl;
  explicit EmbeddedService(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_SERVICE_H_
