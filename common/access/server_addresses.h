#ifndef PLUMBLINE_COMMON_ACCESS_SERVER_ADDRESSES_H_
#define PLUMBLINE_COMMON_ACCESS_SERVER_ADDRESSES_H_

#include <netdb.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace plumbline {

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

struct ServerAddresses {
  std::vector<SocketAddress> all;  // In the order in which to try them.
  // Those who should know the host's name say that there is none. Where they say nothing, `all` is
  // empty without this.
  bool is_unknown = false;
};

// getaddrinfo, or what a test has in its place. Called on a thread of its own, with a name.
using HostLookup =
    std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** found)>;

// Where `server`, "HOST:PORT" or "unix:PATH", is to be reached. A lookup takes as long as name
// servers leave it waiting, and cannot be broken off: after `limit` nothing is found, and it goes
// on by itself, without harm to a process that ends meanwhile. Any thread may call.
ServerAddresses FindServer(const std::string& server, absl::Duration limit,
                           HostLookup lookup = &getaddrinfo);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_SERVER_ADDRESSES_H_
