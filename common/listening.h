#ifndef PLUMBLINE_COMMON_LISTENING_H_
#define PLUMBLINE_COMMON_LISTENING_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Whether this process could listen on `address`, "HOST:PORT" or "unix:PATH", which it tries. gRPC,
// asked to listen where it cannot, says so in lines of its own and not to its caller.
// INVALID_ARGUMENT naming `field` for what is no address; UNAVAILABLE saying what is in the way:
// another process that listens there, a name that is not known, a folder that is not there.
absl::Status CheckCanListen(const std::string& address, absl::string_view field);

// The same for all addresses of a process at once, each a field and its address, two of which may
// not be one: for a process that makes nothing before it knows. Of "unix:PATH" only whether its
// folder is there: a trial would be in the way of whoever begins to listen there.
absl::Status CheckCanListenOnAll(const std::vector<std::pair<std::string, std::string>>& addresses);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_LISTENING_H_
