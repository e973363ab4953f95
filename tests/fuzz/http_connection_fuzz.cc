// Whole conversations with the HTTP port: what a client sends, in pieces, over a connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/http_server.h"
#include "server/http/origin_filter.h"
#include "tests/fuzz/input.h"

namespace plumbline {
namespace {

constexpr char kOrigin[] = "https://other.test";

// A server with every kind of handler. It lives as long as the process.
class Server {
 public:
  Server() : server_(Limits()) {
    server_.SetFilter(server::MakeOriginFilter({kOrigin}, /*loopback_only=*/true));
    server_.SetExtraHeaders(
        [](const HttpRequest& request) { return server::CorsHeaders({kOrigin}, request); });
    server::AddPreflight({kOrigin}, &server_);
    server_.Handle("GET", "/file", [](const HttpRequest&) {
      HttpResponse response;
      response.file = HttpFile{1000, "tag", [](int64_t offset, int64_t length) {
                                 FUZZ_REQUIRE(offset >= 0 && length > 0 && offset + length <= 1000);
                                 return std::string(static_cast<size_t>(length), 'f');
                               }};
      return response;
    });
    server_.Handle("GET", "/broken", [](const HttpRequest&) {
      HttpResponse response;
      response.file = HttpFile{1000, "", [](int64_t, int64_t) {
                                 return absl::StatusOr<std::string>(absl::DataLossError("gone"));
                               }};
      return response;
    });
    server_.Handle("POST", "/echo/*", [](const HttpRequest& request) {
      HttpResponse response;
      response.body = absl::StrCat(request.rest, request.body);
      return response;
    });
    server_.HandleStream("POST", "/stream",
                         [](const HttpRequest& request, std::shared_ptr<HttpStream> stream) {
                           stream->OnceLeft([] {});
                           stream->Start(200, {{"Content-Type", "text/plain"}});
                           stream->Write(request.body, [stream](bool taken) {
                             if (!taken) return;
                             stream->Write("more", [stream](bool) { stream->Finish(); });
                           });
                         });
    // Nobody answers.
    server_.HandleStream("POST", "/drop", [](const HttpRequest&, std::shared_ptr<HttpStream>) {});
    if (!server_.Start("127.0.0.1:0").ok()) std::abort();
  }

  // What the server answers to `pieces`, sent one after another, and nothing behind them.
  std::string Converse(const std::vector<absl::string_view>& pieces) const {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // From ever another address of this machine: the ports of one are used up within minutes.
    static uint32_t next = 0;
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + next++ % (1 << 20));
    if (bind(connection, reinterpret_cast<sockaddr*>(&own), sizeof(own)) != 0) std::abort();
    if (!Connect(connection, address)) std::abort();
    const int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (absl::string_view piece : pieces) {
      // It may have hung up.
      if (send(connection, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
    }
    shutdown(connection, SHUT_WR);
    std::string answer;
    char buffer[4096];
    // Until it hangs up, which libFuzzer's time limit waits for.
    while (true) {
      const ssize_t bytes = recv(connection, buffer, sizeof(buffer), 0);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) break;
      answer.append(buffer, static_cast<size_t>(bytes));
    }
    close(connection);
    return answer;
  }

 private:
  // libFuzzer's clock interrupts calls.
  static bool Connect(int connection, const sockaddr_in& address) {
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return true;
    }
    if (errno != EINTR) return false;
    pollfd watched = {connection, POLLOUT, 0};
    while (poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  static HttpLimits Limits() {
    HttpLimits limits;
    limits.max_header_bytes = 2048;
    limits.max_body_bytes = 4096;
    limits.max_bodies_bytes = 16384;
    return limits;
  }

  HttpServer server_;
};

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  static const Server* const server = new Server;
  fuzz::Input input(data, size);
  const size_t cut = input.Byte();
  const absl::string_view sent = input.Rest();
  const absl::string_view first = sent.substr(0, cut);
  const std::string answer = server->Converse({first, sent.substr(first.size())});
  FUZZ_REQUIRE(answer.empty() || absl::StartsWith(answer, "HTTP/1."));
  return 0;
}
