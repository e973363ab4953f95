#include "common/listening.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/host_and_port.h"
#include "common/status.h"

namespace plumbline {
namespace {

class Socket {
 public:
  explicit Socket(int family) : descriptor_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

using Sockets = std::vector<std::unique_ptr<Socket>>;

// 0, or an errno. The socket listens as long as `held` has it.
int TryBind(int family, const sockaddr* address, socklen_t size, Sockets* held) {
  held->push_back(std::make_unique<Socket>(family));
  const Socket& socket = *held->back();
  const int on = 1;
  // As those that listen do, so that connections that have ended are not in the way.
  if (socket.get() < 0 ||
      (family != AF_UNIX &&
       setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) ||
      bind(socket.get(), address, size) != 0 || listen(socket.get(), 1) != 0) {
    return errno;
  }
  return 0;
}

absl::Status Cannot(absl::string_view address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

std::string ErrorWords(int error_number) {
  if (error_number == EADDRINUSE) return "another process listens there";
  return std::string(absl::ErrnoToStatus(error_number, "").message().substr(2));
}

// A socket without a listener stays behind where a process ended without a word: it is no
// hindrance.
absl::Status CheckPath(const std::string& address, absl::string_view path,
                       absl::string_view field) {
  sockaddr_un socket_address = {};
  socket_address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(socket_address.sun_path)) {
    return FieldError(
        field, absl::StrCat(Quoted(address), " has no path, or too long a one"),
        absl::StrCat("unix:PATH, PATH of at most ", sizeof(socket_address.sun_path) - 1, " bytes"));
  }
  std::memcpy(socket_address.sun_path, path.data(), path.size());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&socket_address);
  struct stat info;
  if (lstat(socket_address.sun_path, &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) return Cannot(address, "there is a file that is no socket");
    const Socket client(AF_UNIX);
    return connect(client.get(), generic, sizeof(socket_address)) == 0
               ? Cannot(address, ErrorWords(EADDRINUSE))
               : absl::OkStatus();
  }
  Sockets held;
  if (const int error_number = TryBind(AF_UNIX, generic, sizeof(socket_address), &held);
      error_number != 0) {
    return Cannot(address, ErrorWords(error_number));
  }
  unlink(socket_address.sun_path);
  return absl::OkStatus();
}

absl::Status CheckPort(const std::string& address, absl::string_view field, Sockets* held) {
  PLUMBLINE_ASSIGN_OR_RETURN(
      const HostAndPort parsed,
      ParseHostAndPort(address, 0, field, "HOST:PORT or [IPV6]:PORT with a port from 0 to 65535"));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(parsed.host.c_str(), absl::StrCat(parsed.port).c_str(), &hints, &found);
      error != 0) {
    return Cannot(address, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &freeaddrinfo);
  // A name may stand for addresses that this machine does not have: one that it has is enough, but
  // none may be another's.
  int last_error = EADDRNOTAVAIL;
  bool any = false;
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    const int error_number = TryBind(each->ai_family, each->ai_addr, each->ai_addrlen, held);
    if (error_number == EADDRINUSE) return Cannot(address, ErrorWords(EADDRINUSE));
    any = any || error_number == 0;
    if (error_number != 0) last_error = error_number;
  }
  return any ? absl::OkStatus() : Cannot(address, ErrorWords(last_error));
}

}  // namespace

absl::Status CheckCanListen(const std::string& address, absl::string_view field) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) return CheckPath(address, path, field);
  Sockets held;
  return CheckPort(address, field, &held);
}

absl::Status CheckCanListenOnAll(
    const std::vector<std::pair<std::string, std::string>>& addresses) {
  Sockets held;
  for (const auto& [field, address] : addresses) {
    absl::string_view path = address;
    if (absl::ConsumePrefix(&path, "unix:")) {
      const std::string folder = std::filesystem::path(std::string(path)).parent_path().string();
      struct stat info;
      if (stat(folder.empty() ? "." : folder.c_str(), &info) != 0) {
        return Cannot(address, ErrorWords(errno));
      }
      continue;
    }
    const absl::Status status = CheckPort(address, field, &held);
    if (status.ok()) continue;
    held.clear();
    if (!CheckPort(address, field, &held).ok()) return status;
    return FieldError(field, absl::StrCat(Quoted(address), " is another address of this process"),
                      "a port of its own");
  }
  return absl::OkStatus();
}

}  // namespace plumbline
