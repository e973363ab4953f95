#include "common/access/probe_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

#include "common/clock.h"

namespace plumbline {
namespace {

// How many times the limit of a call all that is received may take.
constexpr int kLimits = 3;

// A descriptor, or -1.
int ConnectTo(const SocketAddress& address, absl::Duration limit) {
  const int descriptor = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const timeval time = absl::ToTimeval(limit);
  // Of sending, and so of connecting.
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (connect(descriptor, generic, address.size) == 0) return descriptor;
  close(descriptor);
  return -1;
}

}  // namespace

std::unique_ptr<ProbeSocket> ProbeSocket::Connect(const ServerAddresses& addresses,
                                                  absl::Duration limit) {
  int descriptor = -1;
  for (const SocketAddress& address : addresses.all) {
    descriptor = ConnectTo(address, limit);
    if (descriptor >= 0) break;
  }
  if (descriptor < 0) return nullptr;
  const absl::Time end = SteadyClock()->Now() + kLimits * limit;
  return std::unique_ptr<ProbeSocket>(new ProbeSocket(descriptor, end));
}

ProbeSocket::~ProbeSocket() { close(descriptor_); }

bool ProbeSocket::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string ProbeSocket::Receive() {
  if (SteadyClock()->Now() >= end_) return "";
  char buffer[16 << 10];
  ssize_t size = -1;
  do {
    size = recv(descriptor_, buffer, sizeof(buffer), 0);
  } while (size < 0 && errno == EINTR);
  ended_ = size == 0 || (size < 0 && errno == ECONNRESET);
  return size <= 0 ? "" : std::string(buffer, static_cast<size_t>(size));
}

}  // namespace plumbline
