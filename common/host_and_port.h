#ifndef PLUMBLINE_COMMON_HOST_AND_PORT_H_
#define PLUMBLINE_COMMON_HOST_AND_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

struct HostAndPort {
  std::string host;  // A name or an address; one of IPv6 without its brackets.
  int port = 0;
};

// Of "HOST:PORT" or "[IPV6]:PORT", with a port from `lowest_port` to 65535. INVALID_ARGUMENT, which
// names `field` and `accepted`, if it is neither.
absl::StatusOr<HostAndPort> ParseHostAndPort(absl::string_view address, int lowest_port,
                                             absl::string_view field, absl::string_view accepted);

// Whether `host` is this machine's alone: 127.0.0.0/8, ::1, localhost. "127.example.com" is not.
bool IsLoopbackHost(const std::string& host);
// The same of an address, "HOST:PORT" or "unix:PATH", that was checked before.
bool IsLoopbackAddress(absl::string_view address);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_HOST_AND_PORT_H_
