#include "server/http/artifact_handler.h"

#include <string>

#include "absl/strings/ascii.h"
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

// RFC 6266 and 8187: the name as it would be saved, in ASCII whatever it is.
std::string Disposition(absl::string_view file_name) {
  std::string value = "inline; filename*=UTF-8''";
  for (const char c : file_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_') {
      value.push_back(c);
    } else {
      absl::StrAppend(&value, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return value;
}

}  // namespace

void AddArtifactHandler(Clock* clock, const Store* store, const ArtifactFiles* files,
                        HttpServer* server) {
  server->Handle("GET", "/artifacts/*", [=](const HttpRequest& request) {
    const std::string name = absl::StrCat("artifacts/", request.rest);
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
    response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
    response.headers.emplace_back("Referrer-Policy", "no-referrer");
    // It never changes, but only whoever has a ticket may see it.
    response.headers.emplace_back("Cache-Control", "private, max-age=600");
    response.headers.emplace_back("Content-Disposition", Disposition(artifact->file_name()));
    response.file = HttpFile{artifact->size_bytes(), artifact->sha256(),
                             [files, name](int64_t offset, int64_t length) {
                               return files->Read(name, offset, length);
                             }};
    return response;
  });
}

}  // namespace plumbline::server
