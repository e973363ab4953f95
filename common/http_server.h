#ifndef PLUMBLINE_COMMON_HTTP_SERVER_H_
#define PLUMBLINE_COMMON_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

struct HttpRequest {
  std::string method;
  std::string path;                            // Decoded, without the query.
  std::vector<std::string> captures;           // What the groups of the handler's pattern matched.
  std::map<std::string, std::string> query;    // Of a name given twice, one value.
  std::map<std::string, std::string> headers;  // By lower-case name; the same holds.
  std::string body;
};

// A body too large for memory.
struct HttpFile {
  int64_t size_bytes = 0;
  // `length` bytes from `offset`. An error breaks the connection off.
  std::function<absl::StatusOr<std::string>(int64_t offset, int64_t length)> read;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // In place of `body`: sent as it is read, whole or, as 206, what a Range header asks for.
  std::optional<HttpFile> file;
};

// Called on several threads at once.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// The HTTP port of a daemon. Everything but the handlers is called from one thread.
class HttpServer {
 public:
  HttpServer();
  ~HttpServer();  // Stops.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Registers `handler` for "GET" (HEAD too) or "POST" and paths that match the whole of `pattern`,
  // an ECMAScript regular expression. The first registered that matches is called. Before Start.
  void Handle(absl::string_view method, const std::string& pattern, HttpHandler handler);

  // Listens on `address`, "HOST:PORT" or "[IPV6]:PORT", and serves on threads of its own. Port 0
  // takes a free one. INVALID_ARGUMENT for an address that is none; UNAVAILABLE if it cannot be
  // listened on, e.g. because another process does. Once.
  absl::Status Start(absl::string_view address);

  // The port listened on; 0 before Start.
  int port() const;

  // Accepts no more, waits for the handlers that run, at most seconds for a client that dawdles.
  void Stop();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_HTTP_SERVER_H_
