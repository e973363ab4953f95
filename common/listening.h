#ifndef PLUMBLINE_COMMON_LISTENING_H_
#define PLUMBLINE_COMMON_LISTENING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Whether this process could listen on `address`, "HOST:PORT" or "unix:PATH", which it tries. gRPC,
// asked to listen where it cannot, says so in lines of its own and not to its caller.
// INVALID_ARGUMENT naming `field` for what is no address; UNAVAILABLE saying what is in the way:
// another process that listens there, a name that is not known, a folder that is not there.
absl::Status CheckCanListen(const std::string& address, absl::string_view field);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_LISTENING_H_
