#ifndef PLUMBLINE_SERVER_LISTEN_ADDRESS_H_
#define PLUMBLINE_SERVER_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline::server {

// Whether `host` is this machine's alone: 127.0.0.0/8, ::1, localhost.
bool IsLoopbackHost(const std::string& host);

// OK for "HOST:PORT" with a host of this machine alone (127.0.0.0/8, [::1], localhost) and for
// "unix:PATH". Others would let anybody in, as long as the server speaks no TLS and asks for no
// token: FAILED_PRECONDITION. INVALID_ARGUMENT naming `field` for what is no address.
absl::Status CheckListenAddress(absl::string_view address, absl::string_view field);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_LISTEN_ADDRESS_H_
