#ifndef PLUMBLINE_COMMON_ACCESS_CONNECTION_CHECK_H_
#define PLUMBLINE_COMMON_ACCESS_CONNECTION_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/access/client_channel.h"

namespace plumbline {

// Why a gRPC client with `files` gets no connection to `server` (HOST:PORT or unix:PATH), which
// gRPC itself does not tell its caller: connects, shakes hands and looks at what comes back, for
// `limit` a step at most. INVALID_ARGUMENT, naming the flag to change, for
//   - a certificate that is not trusted, has expired, or is of another host;
//   - TLS asked for where there is none, none where there is, and a port that does not speak gRPC;
//   - a server that wants a certificate, or does not trust the one that it is shown;
//   - a host's name that nobody knows.
// OK if nobody listens there, or nothing is wrong that can be seen from here.
absl::Status CheckConnection(const std::string& server, const ClientFiles& files,
                             absl::Duration limit);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_CONNECTION_CHECK_H_
