#include "worker/device_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/in_use.h"

namespace plumbline::worker {
namespace {

// A socket of the abstract namespace has a name that one process of the machine can have at a time,
// and leaves no file behind. Nobody ever connects to it. The digest makes every name fit.
absl::StatusOr<int> Bind(const std::string& device) {
  const std::string name = absl::StrCat("plumbline-worker-device-", Sha256Hex(device));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  static_assert(sizeof(address.sun_path) > 1 + 24 + 64);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());

  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "cannot make a socket to claim a device");
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return descriptor;
  const int error_number = errno;
  close(descriptor);
  if (error_number != EADDRINUSE) {
    return absl::ErrnoToStatus(error_number, absl::StrCat("cannot claim ", Quoted(device)));
  }
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("device: another worker of this machine has ", Quoted(device),
                                     "; each device takes one worker (--share-device lifts that)")),
                    kInUseReason);
}

}  // namespace

absl::StatusOr<DeviceClaim> DeviceClaim::Take(const std::vector<std::string>& devices) {
  DeviceClaim claim;
  for (const std::string& device : devices) {
    PLUMBLINE_ASSIGN_OR_RETURN(const int socket, Bind(device));
    claim.sockets_.push_back(socket);
  }
  return claim;
}

DeviceClaim::~DeviceClaim() {
  for (const int socket : sockets_) close(socket);
}

DeviceClaim::DeviceClaim(DeviceClaim&& other) noexcept
    : sockets_(std::exchange(other.sockets_, {})) {}

DeviceClaim& DeviceClaim::operator=(DeviceClaim&& other) noexcept {
  std::swap(sockets_, other.sockets_);
  return *this;
}

}  // namespace plumbline::worker
