#include "common/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/host_and_port.h"
#include "common/http_connection.h"
#include "common/status.h"

namespace plumbline {
namespace {

namespace net = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using net::ip::tcp;

// They move bytes, and never wait.
constexpr int kIoThreads = 2;
constexpr char kTls12Ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr absl::Duration kStopGrace = absl::Seconds(1);
// To whoever has one connection too many, whatever is asked for: so without a body.
constexpr char kRefusal[] =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    "Content-Length: 0\r\n\r\n";
// Until a connection has ended that makes room for another.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(20);

// Half of the files that the process may have open belong to the rest of the daemon.
HttpLimits WithinProcessLimits(HttpLimits limits) {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    limits.max_connections = static_cast<int>(std::min<rlim_t>(
        static_cast<rlim_t>(limits.max_connections), std::max<rlim_t>(files.rlim_cur / 2, 1)));
  }
  return limits;
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(const HttpLimits& limits)
      : shared_(WithinProcessLimits(limits)), acceptor_(net::make_strand(io_)), pause_(io_) {}

  http_internal::Shared& shared() { return shared_; }
  void SetTls(TlsSource source) { tls_ = std::move(source); }
  int port() const { return port_; }
  int64_t refused_connections() const { return refused_connections_; }

  absl::Status Start(absl::string_view address) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        const HostAndPort parsed,
        ParseHostAndPort(address, 0, "http address",
                         "HOST:PORT or [IPV6]:PORT with a port from 0 to 65535"));
    error_code error;
    tcp::resolver resolver(io_);
    const auto found =
        resolver.resolve(parsed.host, absl::StrCat(parsed.port), tcp::resolver::passive, error);
    if (!error && !found.empty()) {
      const tcp::endpoint endpoint = found.begin()->endpoint();
      acceptor_.open(endpoint.protocol(), error);
      // Not SO_REUSEPORT, with which two daemons could share a port unnoticed.
      if (!error) acceptor_.set_option(net::socket_base::reuse_address(true), error);
      if (!error) acceptor_.bind(endpoint, error);
      if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    }
    if (error || found.empty()) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", address, ": ",
          error == net::error::address_in_use ? "another process listens there" : error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    for (int i = 0; i < kIoThreads; ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
    return absl::OkStatus();
  }

  void Stop() {
    if (threads_.empty()) return;
    net::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    shared_.registry.CloseAll(kStopGrace);
    shared_.handlers.join();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Accept() {
    acceptor_.async_accept(net::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        // E.g. too many open files.
        shared_.registry.CloseOneIdle(shared_.limits.stuck_time);
        AcceptLater();
        return;
      }
      const int most = shared_.limits.max_connections_per_address;
      const std::string peer = http_internal::PeerOf(socket, shared_.limits);
      if (most > 0 && !peer.empty() && shared_.registry.SizeOf(peer) >= most) {
        ++refused_connections_;
        Refuse(std::move(socket));
        Accept();
        return;
      }
      const bool full = shared_.registry.size() >= shared_.limits.max_connections;
      if (full && !shared_.registry.CloseOneIdle(shared_.limits.stuck_time)) {
        // All are being answered, and read their answers: the newcomer goes.
        Refuse(std::move(socket));
        AcceptLater();
        return;
      }
      http_internal::NewConnection(&shared_, std::move(socket), TlsContext())->Run();
      Accept();
    });
  }

  // Closes a connection, and says so in one write that waits for nobody. Under TLS it is closed
  // without a word: to be understood would cost a handshake.
  void Refuse(tcp::socket socket) const {
    error_code ignored;
    if (!tls_) {
      socket.non_blocking(true, ignored);
      // A request that has come by now is taken first: closing with bytes unread takes back what
      // was written.
      std::array<char, 4096> request;
      socket.read_some(net::buffer(request), ignored);
      socket.write_some(net::buffer(kRefusal, sizeof(kRefusal) - 1), ignored);
      socket.shutdown(tcp::socket::shutdown_send, ignored);
    }
    socket.close(ignored);
  }

  // Of the identity to use now; null without TLS. On the acceptor's strand.
  std::shared_ptr<ssl::context> TlsContext() {
    if (!tls_) return nullptr;
    const std::shared_ptr<const TlsIdentity> identity = tls_();
    if (identity != context_identity_) {
      // It was checked when it was loaded.
      auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
      error_code error;
      context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                               ssl::context::no_sslv3 | ssl::context::no_tlsv1 |
                               ssl::context::no_tlsv1_1,
                           error);
      // As gRPC's port: what was recorded cannot be read by whoever gets the key later.
      SSL_CTX_set_cipher_list(context->native_handle(), kTls12Ciphers);
      context->use_certificate_chain(net::buffer(identity->certificate_pem), error);
      context->use_private_key(net::buffer(identity->key_pem), ssl::context::pem, error);
      if (!identity->client_ca_pem.empty()) {
        context->add_certificate_authority(net::buffer(identity->client_ca_pem), error);
        context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
      }
      // A client that comes back need not be let in by a certificate that is trusted no more.
      SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
      SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_TICKET);
      context_ = std::move(context);
      context_identity_ = identity;
    }
    return context_;
  }

  void AcceptLater() {
    pause_.expires_after(absl::ToChronoNanoseconds(kAcceptPause));
    pause_.async_wait(net::bind_executor(acceptor_.get_executor(), [this](error_code) {
      if (acceptor_.is_open()) Accept();
    }));
  }

  net::io_context io_;
  // Its threads stay although all that goes on is in a handler.
  const net::executor_work_guard<net::io_context::executor_type> work_{io_.get_executor()};
  http_internal::Shared shared_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  TlsSource tls_;
  std::shared_ptr<const TlsIdentity> context_identity_;
  std::shared_ptr<ssl::context> context_;
  std::vector<std::thread> threads_;
  int port_ = 0;
  std::atomic<int64_t> refused_connections_{0};
};

HttpServer::HttpServer(HttpLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(absl::string_view method, absl::string_view path, HttpHandler handler) {
  http_internal::Route route;
  route.method = std::string(method);
  route.is_prefix = absl::ConsumeSuffix(&path, "*");
  route.path = std::string(path);
  route.handler = std::move(handler);
  impl_->shared().routes.push_back(std::move(route));
}

void HttpServer::HandleStream(absl::string_view method, absl::string_view path,
                              HttpStreamHandler handler) {
  http_internal::Route route;
  route.method = std::string(method);
  route.is_prefix = absl::ConsumeSuffix(&path, "*");
  route.path = std::string(path);
  route.stream_handler = std::move(handler);
  impl_->shared().routes.push_back(std::move(route));
}

void HttpServer::SetFilter(HttpFilter filter) { impl_->shared().filter = std::move(filter); }
void HttpServer::SetExtraHeaders(HttpExtraHeaders headers) {
  impl_->shared().extra_headers = std::move(headers);
}
void HttpServer::SetTls(TlsSource source) { impl_->SetTls(std::move(source)); }
absl::Status HttpServer::Start(absl::string_view address) { return impl_->Start(address); }
int HttpServer::port() const { return impl_->port(); }
int64_t HttpServer::refused_connections() const { return impl_->refused_connections(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace plumbline
