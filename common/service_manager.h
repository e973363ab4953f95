#ifndef PLUMBLINE_COMMON_SERVICE_MANAGER_H_
#define PLUMBLINE_COMMON_SERVICE_MANAGER_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// What started this process, where that wants to hear when it is ready: systemd, for units of
// Type=notify. The protocol is sd_notify(3)'s: a datagram to the socket that NOTIFY_SOCKET names.
class ServiceManager {
 public:
  // A path, or @NAME for a name in Linux' abstract space; empty where nobody listens.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  static ServiceManager FromEnvironment();

  // Sends `lines`, e.g. "READY=1\nSTATUS=serving 127.0.0.1:7433". OK where nobody listens. Does not
  // wait for whoever does. Any thread may call.
  absl::Status Send(absl::string_view lines) const;

  // The same for those who have nothing to do about an error: it is logged.
  void Tell(absl::string_view lines) const;

 private:
  const std::string socket_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_SERVICE_MANAGER_H_
