#include "server/http/artifact_handler.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/api/tickets.h"

namespace plumbline::server {
namespace {

constexpr int64_t kMaxAnswerBytes = 16 << 20;

HttpResponse Error(int status, absl::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(message, "\n");
  return response;
}

struct Range {
  int64_t begin = 0;
  int64_t end = 0;  // One past the last byte.
};

// "bytes=FIRST-LAST", "bytes=FIRST-" or "bytes=-SUFFIX". False if it cannot be satisfied or is of
// another form.
bool ParseRange(absl::string_view text, int64_t size, Range* range) {
  if (!absl::ConsumePrefix(&text, "bytes=")) return false;
  const size_t dash = text.find('-');
  if (dash == absl::string_view::npos) return false;
  const absl::string_view first = text.substr(0, dash);
  const absl::string_view last = text.substr(dash + 1);
  int64_t number = 0;
  range->end = size;
  if (first.empty()) {
    if (!absl::SimpleAtoi(last, &number) || number <= 0) return false;
    range->begin = std::max<int64_t>(0, size - number);
    return size > 0;
  }
  if (!absl::SimpleAtoi(first, &range->begin) || range->begin < 0) return false;
  if (!last.empty()) {
    if (!absl::SimpleAtoi(last, &number) || number < range->begin) return false;
    range->end = std::min(size, number == INT64_MAX ? size : number + 1);
  }
  return range->begin < size;
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
    const int64_t size = artifact->size_bytes();
    Range range{0, size};
    const auto asked = request.headers.find("range");
    if (asked != request.headers.end() && !ParseRange(asked->second, size, &range)) {
      HttpResponse response = Error(416, "the range cannot be satisfied");
      response.headers.emplace_back("Content-Range", absl::StrCat("bytes */", size));
      return response;
    }
    range.end = std::min(range.end, range.begin + kMaxAnswerBytes);
    absl::StatusOr<std::string> bytes =
        files->Read(name, range.begin, range.end - range.begin);
    if (!bytes.ok()) return Error(500, "the artifact cannot be read");

    HttpResponse response;
    response.body = *std::move(bytes);
    response.content_type = artifact->media_type();
    response.headers.emplace_back("Accept-Ranges", "bytes");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    response.headers.emplace_back("Content-Security-Policy", "default-src 'none'; sandbox");
    if (asked != request.headers.end() || range.end < size) {
      response.status = 206;
      response.headers.emplace_back(
          "Content-Range", absl::StrCat("bytes ", range.begin, "-", range.end - 1, "/", size));
    }
    return response;
  });
}

}  // namespace plumbline::server
