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
#include "absl/time/time.h"
#include "common/tls/tls_identity.h"

namespace plumbline {

struct HttpRequest {
  std::string method;
  std::string path;                            // Decoded, without the query.
  std::string rest;                            // What the handler's "*" stands for.
  std::map<std::string, std::string> query;    // Of a name given twice, the first.
  std::map<std::string, std::string> headers;  // By lower-case name; the same holds.
  // Common name of the client's certificate, which was verified; "": it has none.
  std::string client_certificate;
  std::string body;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A body too large for memory.
struct HttpFile {
  int64_t size_bytes = 0;
  // Without quotes; "": none. With it a client may ask for the rest of what it has, or for nothing.
  std::string entity_tag;
  // `length` bytes from `offset`; may block. An error breaks the connection off.
  std::function<absl::StatusOr<std::string>(int64_t offset, int64_t length)> read;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  HttpHeaders headers;
  // In place of `body`: sent as it is read, whole, or as 206 what a Range header asks for, or as
  // 304 not at all.
  std::optional<HttpFile> file;
};

// Called on several threads at once; may block.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// An answer that comes in pieces. Any thread may call; a piece is written when the one before was.
// After the client has left, calls do nothing.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  // Status line and headers. Once, first.
  virtual void Start(int status, const HttpHeaders& headers) = 0;
  // `done`, on a thread of the server: whether the system took the bytes, which it does no faster
  // than the client reads. One at a time.
  virtual void Write(std::string bytes, std::function<void(bool taken)> done) = 0;
  // The whole answer has been given. Once, last.
  virtual void Finish() = 0;
  // Calls `left`, on a thread of the server, if the client goes before Finish; at once if it has.
  virtual void OnceLeft(std::function<void()> left) = 0;
};

// Must not block.
using HttpStreamHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpStream>)>;

// Looks at every request before its handler does. A response: refused with it. Must not block.
using HttpFilter = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

// Headers to add to whatever is answered to a request. Must not block.
using HttpExtraHeaders = std::function<HttpHeaders(const HttpRequest&)>;

// What a client may cost. A slow one holds a connection and its buffers, never a thread, and each
// wait for it ends.
struct HttpLimits {
  // Above it, the connection that has waited longest for a request is closed for a new one; where
  // none waits, the one that has been stuck longest; where there is neither, the new one is
  // refused.
  int max_connections = 4096;
  // Of one address, or of one IPv6 network of 64 bits, which is what one client has; a connection
  // above it is refused: closed at once, without TLS with a 503. 0: no limit.
  int max_connections_per_address = 256;
  // Whether loopback addresses have that limit too. A proxy may be there.
  bool limits_loopback = false;
  // How long a client may leave 64 KiB of an answer unread before it counts as stuck.
  absl::Duration stuck_time = absl::Seconds(5);
  size_t max_header_bytes = 16 << 10;
  // A message of 4 MB as text, with its frame.
  size_t max_body_bytes = 6 << 20;
  // Of all bodies that are being received or handled together; above it: 503.
  int64_t max_bodies_bytes = 256 << 20;
  absl::Duration header_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(30);
  // Between two requests.
  absl::Duration idle_timeout = absl::Seconds(60);
  // For each 64 KiB of an answer.
  absl::Duration write_timeout = absl::Seconds(60);
};

// The HTTP/1.1 port of a daemon. Everything but the handlers is called from one thread.
class HttpServer {
 public:
  explicit HttpServer(HttpLimits limits = {});
  ~HttpServer();  // Stops.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Registers `handler` for "GET" (HEAD too), "POST" or "OPTIONS" and `path`, or for every path
  // that begins with it if it ends in "*". The first registered that matches is called. Before
  // Start.
  void Handle(absl::string_view method, absl::string_view path, HttpHandler handler);
  void HandleStream(absl::string_view method, absl::string_view path, HttpStreamHandler handler);
  void SetFilter(HttpFilter filter);
  void SetExtraHeaders(HttpExtraHeaders headers);
  // Speaks TLS 1.2 or 1.3 with what `source` returns when a connection is made. Before Start.
  void SetTls(TlsSource source);

  // Listens on `address`, "HOST:PORT" or "[IPV6]:PORT", and serves on threads of its own. Port 0
  // takes a free one. INVALID_ARGUMENT for an address that is none; UNAVAILABLE if it cannot be
  // listened on, e.g. because another process does. Once.
  absl::Status Start(absl::string_view address);

  // The port listened on; 0 before Start.
  int port() const;
  // Connections closed so far for max_connections_per_address. Any thread may call.
  int64_t refused_connections() const;

  // Accepts no more, waits for the requests being answered for a second, and breaks the rest off;
  // then for handlers, and until nobody holds an HttpStream.
  void Stop();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_HTTP_SERVER_H_
