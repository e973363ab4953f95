#include "server/http/artifact_handler.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/api/tickets.h"

namespace plumbline::server {
namespace {

HttpResponse Error(int status, absl::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(message, "\n");
  return response;
}

}  // namespace

void AddArtifactHandler(Clock* clock, const Store* store, const ArtifactFiles* files,
                        HttpServer* server) {
  server->Handle("GET", "/artifacts/([a-z0-9-]{1,63})", [=](const HttpRequest& request) {
    const std::string name = absl::StrCat("artifacts/", request.captures[0]);
    const auto ticket = request.query.find("ticket");
    // Without a ticket nothing is told of what there is.
    if (ticket == request.query.end() ||
        !CheckTicket(store->format().ticket_key(), name, ticket->second, clock->Now()).ok()) {
      return Error(403, "the ticket is missing, for another artifact, or has expired");
    }
    const absl::StatusOr<v1::Artifact> artifact = store->ReadArtifact(name);
    if (!artifact.ok()) return Error(404, "there is no such artifact");
    HttpResponse response;
    response.content_type = artifact->media_type();
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    response.headers.emplace_back("Content-Security-Policy", "default-src 'none'; sandbox");
    response.file = HttpFile{artifact->size_bytes(), [files, name](int64_t offset, int64_t length) {
                               return files->Read(name, offset, length);
                             }};
    return response;
  });
}

}  // namespace plumbline::server
