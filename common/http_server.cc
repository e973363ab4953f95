#include "common/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "common/status.h"

namespace plumbline {
namespace {

// A handler may take long, so there are more threads than a machine's few probes need.
constexpr size_t kThreads = 16;
// No message of the API is larger than 4 MB.
constexpr size_t kMaxBodyBytes = 4 << 20;
constexpr int kReadTimeoutSeconds = 5;
// An idle connection delays Stop by this much.
constexpr int kKeepAliveSeconds = 1;
constexpr size_t kRequestsPerConnection = 1000;

struct HostAndPort {
  std::string host;
  int port;
};

absl::StatusOr<HostAndPort> ParseAddress(absl::string_view address) {
  const auto refuse = [address](absl::string_view why) {
    return FieldError("http address", absl::StrCat(Quoted(address), " ", why),
                      "HOST:PORT or [IPV6]:PORT with a port from 0 to 65535");
  };
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return refuse("has no host and port");
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) {
    if (!absl::ConsumeSuffix(&host, "]")) return refuse("has an unclosed bracket");
  } else if (host.find(':') != absl::string_view::npos) {
    return refuse("has several colons");
  }
  int port = 0;
  const absl::string_view port_text = address.substr(colon + 1);
  if (port_text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return refuse("has no valid port");
  }
  return HostAndPort{std::string(host), port};
}

HttpRequest ToRequest(const httplib::Request& from) {
  HttpRequest request;
  request.method = from.method;
  request.path = from.path;
  for (size_t i = 1; i < from.matches.size(); ++i) request.captures.push_back(from.matches[i]);
  request.query.insert(from.params.begin(), from.params.end());
  for (const auto& [name, value] : from.headers) {
    request.headers.emplace(absl::AsciiStrToLower(name), value);
  }
  request.body = from.body;
  return request;
}

constexpr size_t kFileChunkBytes = 1 << 20;

void SendFile(HttpFile file, const std::string& content_type, httplib::Response* to) {
  if (file.size_bytes == 0) {
    to->set_content("", content_type);
    return;
  }
  to->set_content_provider(
      static_cast<size_t>(file.size_bytes), content_type,
      [read = std::move(file.read)](size_t offset, size_t length, httplib::DataSink& sink) {
        const absl::StatusOr<std::string> bytes = read(
            static_cast<int64_t>(offset), static_cast<int64_t>(std::min(length, kFileChunkBytes)));
        return bytes.ok() && !bytes->empty() && sink.write(bytes->data(), bytes->size());
      });
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kMaxBodyBytes);
    server_.set_read_timeout(kReadTimeoutSeconds);
    server_.set_keep_alive_timeout(kKeepAliveSeconds);
    server_.set_keep_alive_max_count(kRequestsPerConnection);
    server_.set_tcp_nodelay(true);
    // The library's default is SO_REUSEPORT, with which two daemons could share a port unnoticed.
    server_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    // The library's default shows the exception's text to the client.
    server_.set_exception_handler([](const httplib::Request&, httplib::Response& response,
                                     std::exception_ptr) { response.status = 500; });
    server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) {
        response.set_content(absl::StrCat("error ", response.status, "\n"),
                             "text/plain; charset=utf-8");
      }
    });
  }

  void Handle(absl::string_view method, const std::string& pattern, HttpHandler handler) {
    httplib::Server::Handler wrapped = [handler = std::move(handler)](const httplib::Request& from,
                                                                      httplib::Response& to) {
      HttpResponse response = handler(ToRequest(from));
      for (const auto& [name, value] : response.headers) to.set_header(name, value);
      if (response.file.has_value()) {
        // Its status depends on the range that was asked for.
        SendFile(*std::move(response.file), response.content_type, &to);
        return;
      }
      to.status = response.status;
      to.set_content(std::move(response.body), response.content_type);
    };
    if (method == "POST") {
      server_.Post(pattern, std::move(wrapped));
    } else {
      server_.Get(pattern, std::move(wrapped));
    }
  }

  absl::Status Start(absl::string_view address) {
    PLUMBLINE_ASSIGN_OR_RETURN(const HostAndPort parsed, ParseAddress(address));
    const int port = parsed.port == 0 ? server_.bind_to_any_port(parsed.host)
                     : server_.bind_to_port(parsed.host, parsed.port) ? parsed.port
                                                                      : -1;
    if (port <= 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", address, ": no such address here, or another process uses it"));
    }
    port_ = port;
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      ended_.Notify();
    });
    // stop() does nothing before the server runs, so nobody may call it earlier than that.
    while (!server_.is_running() && !ended_.HasBeenNotified()) std::this_thread::yield();
    return absl::OkStatus();
  }

  int port() const { return port_; }

  void Stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

 private:
  httplib::Server server_;
  std::thread thread_;  // Accepts connections.
  absl::Notification ended_;
  int port_ = 0;
};

HttpServer::HttpServer() : impl_(std::make_unique<Impl>()) {}
HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(absl::string_view method, const std::string& pattern, HttpHandler handler) {
  impl_->Handle(method, pattern, std::move(handler));
}

absl::Status HttpServer::Start(absl::string_view address) { return impl_->Start(address); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace plumbline
