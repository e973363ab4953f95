#ifndef PLUMBLINE_SERVER_HTTP_ORIGIN_FILTER_H_
#define PLUMBLINE_SERVER_HTTP_ORIGIN_FILTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/http_server.h"

namespace plumbline::server {

// Which pages may call the HTTP port from a browser: its own, and those of `cors_origins`, e.g.
// "https://plumbline.example:8443". INVALID_ARGUMENT naming `field` for what is no origin.
absl::Status CheckOrigins(const std::vector<std::string>& cors_origins, absl::string_view field);

// Refuses a request of a page of another origin with 403. With `loopback_only` also one whose Host
// is not of this machine, with 421: a page whose name was pointed at 127.0.0.1 has another one.
HttpFilter MakeOriginFilter(std::vector<std::string> cors_origins, bool loopback_only);

// Adds OPTIONS for preflights, which answers pages of `cors_origins` alone. With none of them there
// is no such method.
void AddPreflight(const std::vector<std::string>& cors_origins, HttpServer* server);

// The headers that let a page of another origin read an answer to `request`; none if it comes from
// no such page.
HttpHeaders CorsHeaders(const std::vector<std::string>& cors_origins, const HttpRequest& request);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_ORIGIN_FILTER_H_
