#ifndef PLUMBLINE_SERVER_STORE_RUN_NAME_H_
#define PLUMBLINE_SERVER_STORE_RUN_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::server {

// The last part of "runs/{run}". INVALID_ARGUMENT, naming `field`, unless that is 64 hex digits or,
// where a prefix is enough, 8 at least.
absl::StatusOr<std::string> ParseRunName(absl::string_view name, absl::string_view field,
                                         bool allow_prefix = false);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_RUN_NAME_H_
