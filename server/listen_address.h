#ifndef PLUMBLINE_SERVER_LISTEN_ADDRESS_H_
#define PLUMBLINE_SERVER_LISTEN_ADDRESS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline::server {

// OK for "HOST:PORT" with a host of this machine alone (127.0.0.0/8, [::1], localhost) and for
// "unix:PATH". Others would let anybody in, unless the server `is_protected`, by TLS and by
// authentication: FAILED_PRECONDITION. INVALID_ARGUMENT naming `field` for what is no address.
absl::Status CheckListenAddress(absl::string_view address, absl::string_view field,
                                bool is_protected);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_LISTEN_ADDRESS_H_
