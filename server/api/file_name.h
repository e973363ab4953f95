#ifndef PLUMBLINE_SERVER_API_FILE_NAME_H_
#define PLUMBLINE_SERVER_API_FILE_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline::server {

// OK for the name of a file without a folder, 1 to 255 bytes of printable text; else
// INVALID_ARGUMENT naming `field`.
absl::Status CheckFileName(absl::string_view name, absl::string_view field);

// OK for a media type as "application/json" (RFC 6838), without parameters; else INVALID_ARGUMENT
// naming `field`. Browsers are told it.
absl::Status CheckMediaType(absl::string_view type, absl::string_view field);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_FILE_NAME_H_
