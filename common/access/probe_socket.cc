#include "common/access/probe_socket.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/clock.h"
#include "common/host_and_port.h"

namespace plumbline {
namespace {

// How many times the limit of a call all that is received may take.
constexpr int kLimits = 3;

// A descriptor, or -1.
int ConnectTo(int family, const sockaddr* address, socklen_t size, absl::Duration limit) {
  const int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const timeval time = absl::ToTimeval(limit);
  // Of sending, and so of connecting.
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  if (connect(descriptor, address, size) == 0) return descriptor;
  close(descriptor);
  return -1;
}

}  // namespace

bool IsKnownHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (found != nullptr) freeaddrinfo(found);
  return error != EAI_NONAME;
}

std::unique_ptr<ProbeSocket> ProbeSocket::Connect(const std::string& server, absl::Duration limit) {
  int descriptor = -1;
  absl::string_view path = server;
  if (absl::ConsumePrefix(&path, "unix:")) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return nullptr;
    std::memcpy(address.sun_path, path.data(), path.size());
    descriptor =
        ConnectTo(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address), limit);
  } else if (const auto parsed = ParseHostAndPort(server, 1, "server", ""); parsed.ok()) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(parsed->host.c_str(), absl::StrCat(parsed->port).c_str(), &hints, &found) !=
        0) {
      return nullptr;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &freeaddrinfo);
    for (const addrinfo* each = all.get(); each != nullptr && descriptor < 0;
         each = each->ai_next) {
      descriptor = ConnectTo(each->ai_family, each->ai_addr, each->ai_addrlen, limit);
    }
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
