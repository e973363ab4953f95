#include "common/host_and_port.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline {

absl::StatusOr<HostAndPort> ParseHostAndPort(absl::string_view address, int lowest_port,
                                             absl::string_view field, absl::string_view accepted) {
  const auto refuse = [&](absl::string_view why) {
    return FieldError(field, absl::StrCat(Quoted(address), " ", why), accepted);
  };
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return refuse("has no host and port");
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) {
    if (!absl::ConsumeSuffix(&host, "]")) return refuse("has an unclosed bracket");
  } else if (host.find(':') != absl::string_view::npos) {
    return refuse("has several colons");
  }
  int port = 0;
  const absl::string_view port_text = address.substr(colon + 1);
  if (port_text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port_text, &port) || port < lowest_port || port > 65535) {
    return refuse("has no valid port");
  }
  return HostAndPort{std::string(host), port};
}

bool IsLoopbackHost(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

bool IsLoopbackAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return IsLoopbackHost(std::string(host));
}

}  // namespace plumbline
