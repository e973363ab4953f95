#include "server/http/origin_filter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/host_and_port.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

std::string HeaderOf(const HttpRequest& request, const std::string& name) {
  const auto header = request.headers.find(name);
  return header == request.headers.end() ? "" : absl::AsciiStrToLower(header->second);
}

// "HOST" of "HOST:PORT", "[IPV6]:PORT" or either without a port.
std::string HostOf(absl::string_view authority) {
  if (absl::ConsumePrefix(&authority, "[")) {
    return std::string(authority.substr(0, authority.find(']')));
  }
  return std::string(authority.substr(0, authority.rfind(':')));
}

bool Contains(const std::vector<std::string>& origins, const std::string& origin) {
  return std::find(origins.begin(), origins.end(), origin) != origins.end();
}

HttpResponse Refusal(int status, absl::string_view why) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(why, "\n");
  return response;
}

}  // namespace

absl::Status CheckOrigins(const std::vector<std::string>& cors_origins, absl::string_view field) {
  for (const std::string& origin : cors_origins) {
    absl::string_view rest = origin;
    const bool scheme =
        absl::ConsumePrefix(&rest, "https://") || absl::ConsumePrefix(&rest, "http://");
    const bool authority = !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) {
      return absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
             absl::ascii_islower(static_cast<unsigned char>(c)) ||
             absl::StrContains("-.:[]", absl::string_view(&c, 1));
    });
    if (!scheme || !authority) {
      return FieldError(field, absl::StrCat(Quoted(origin), " is no origin"),
                        "SCHEME://HOST or SCHEME://HOST:PORT in lower case, without a path");
    }
  }
  return absl::OkStatus();
}

HttpFilter MakeOriginFilter(std::vector<std::string> cors_origins, bool loopback_only) {
  return [cors_origins = std::move(cors_origins),
          loopback_only](const HttpRequest& request) -> std::optional<HttpResponse> {
    const std::string host = HeaderOf(request, "host");
    const auto is_configured = [&cors_origins, &host] {
      return Contains(cors_origins, absl::StrCat("http://", host)) ||
             Contains(cors_origins, absl::StrCat("https://", host));
    };
    if (loopback_only && !host.empty() && !IsLoopbackHost(HostOf(host)) && !is_configured()) {
      return Refusal(421, "this server is for this machine alone");
    }
    const std::string origin = HeaderOf(request, "origin");
    if (origin.empty() || origin == absl::StrCat("http://", host) ||
        origin == absl::StrCat("https://", host) || Contains(cors_origins, origin)) {
      return std::nullopt;
    }
    return Refusal(403, "pages of other origins may not call this server");
  };
}

void AddPreflight(const std::vector<std::string>& cors_origins, HttpServer* server) {
  if (cors_origins.empty()) return;
  server->Handle("OPTIONS", "/*", [cors_origins](const HttpRequest& request) {
    HttpResponse response;
    response.status = 204;
    response.content_type = "";
    response.headers = CorsHeaders(cors_origins, request);
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
    response.headers.emplace_back(
        "Access-Control-Allow-Headers",
        "authorization, content-type, grpc-timeout, range, x-grpc-web, x-user-agent");
    response.headers.emplace_back("Access-Control-Max-Age", "7200");
    return response;
  });
}

HttpHeaders CorsHeaders(const std::vector<std::string>& cors_origins, const HttpRequest& request) {
  const std::string origin = HeaderOf(request, "origin");
  if (cors_origins.empty() || !Contains(cors_origins, origin)) return {};
  return {{"Access-Control-Allow-Origin", origin},
          {"Access-Control-Expose-Headers",
           "grpc-status, grpc-message, grpc-status-details-bin, content-range, etag"},
          {"Vary", "Origin"}};
}

}  // namespace plumbline::server
