#ifndef PLUMBLINE_SERVER_API_TICKETS_H_
#define PLUMBLINE_SERVER_API_TICKETS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Tickets: who holds one may read one artifact until it expires. A ticket is its expiry and an
// HMAC-SHA256 (RFC 2104) of that and the artifact's name under the store's key, so that none needs
// to be stored.

namespace plumbline::server {

std::string MakeTicket(absl::string_view key, absl::string_view artifact, absl::Time expires);

// PERMISSION_DENIED unless `ticket` was made with `key` for `artifact` and has not expired.
absl::Status CheckTicket(absl::string_view key, absl::string_view artifact,
                         absl::string_view ticket, absl::Time now);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_TICKETS_H_
