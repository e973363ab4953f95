#include "common/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/logging.h"

namespace plumbline {

ServiceManager ServiceManager::FromEnvironment() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  return ServiceManager(socket == nullptr ? "" : socket);
}

absl::Status ServiceManager::Send(absl::string_view lines) const {
  if (socket_.empty()) return absl::OkStatus();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if ((socket_[0] != '/' && socket_[0] != '@') || socket_.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET: \"", socket_, "\" is no socket; a path from / or @NAME is"));
  }
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());

  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "cannot make a socket");
  const auto close_it = absl::MakeCleanup([descriptor] { close(descriptor); });
  if (sendto(descriptor, lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("NOTIFY_SOCKET: cannot send to ", socket_));
  }
  return absl::OkStatus();
}

void ServiceManager::Tell(absl::string_view lines) const {
  const absl::Status status = Send(lines);
  if (!status.ok())
    Log(LogLevel::kWarning, "service manager not told", {{"error", status.message()}});
}

}  // namespace plumbline
