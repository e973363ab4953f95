#include "common/http_stream_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/http_message.h"

namespace plumbline::http_internal {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using net::ip::tcp;

constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

absl::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

// A client that vanished without a word is noticed within two minutes, so that what it held is
// freed.
void NoticeDeadPeer(int socket) {
  const std::pair<int, int> options[] = {{TCP_KEEPIDLE, 60}, {TCP_KEEPINTVL, 20}, {TCP_KEEPCNT, 3}};
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  for (const auto& [option, value] : options) {
    setsockopt(socket, IPPROTO_TCP, option, &value, sizeof(value));
  }
}

}  // namespace

StreamConnection::StreamConnection(Shared* shared, tcp::socket socket,
                                   std::shared_ptr<net::ssl::context> context)
    : place_(&shared->registry, PeerOf(socket, shared->limits)),
      shared_(*shared),
      socket_(std::move(socket), std::move(context)),
      timer_(socket_.get_executor()),
      buffer_(shared->limits.max_header_bytes + kPieceBytes) {}

StreamConnection::~StreamConnection() { shared_.bodies.GiveBack(taken_bytes_); }

void StreamConnection::Run() {
  net::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    ErrorCode ignored;
    self->socket_.tcp().set_option(tcp::no_delay(true), ignored);
    NoticeDeadPeer(self->socket_.tcp().native_handle());
    if (self->socket_.is_tls()) {
      self->ShakeHands();
    } else {
      self->AwaitRequest(self->shared_.limits.header_timeout);
    }
  });
}

void StreamConnection::Close() {
  net::post(socket_.get_executor(), [self = shared_from_this()] { self->Abort(); });
}

void StreamConnection::CloseAfterAnswer() {
  net::post(socket_.get_executor(), [self = shared_from_this()] { self->last_ = true; });
}

void StreamConnection::Limit(absl::Duration time) {
  timer_.expires_after(absl::ToChronoNanoseconds(time));
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    const bool over = self->timer_.expiry() <= net::steady_timer::clock_type::now();
    if (!error && over) self->Abort();
  });
}

absl::Duration StreamConnection::StuckFor() const {
  const int64_t since = writing_since_;
  if (since == 0) return absl::ZeroDuration();
  const auto time =
      net::steady_timer::clock_type::now().time_since_epoch() - net::steady_timer::duration(since);
  return absl::FromChrono(time);
}

void StreamConnection::BeginWriting() {
  writing_since_ = net::steady_timer::clock_type::now().time_since_epoch().count();
  Limit(shared_.limits.write_timeout);
}

void StreamConnection::EndWriting() { writing_since_ = 0; }

void StreamConnection::NoLimit() { timer_.expires_at(net::steady_timer::time_point::max()); }

void StreamConnection::Abort() {
  NoLimit();
  ErrorCode ignored;
  socket_.tcp().close(ignored);
  EndExchange();
}

void StreamConnection::EndExchange() {
  in_exchange_ = false;
  if (std::function<void()> left = std::exchange(left_, nullptr)) {
    if (!socket_.tcp().is_open()) left();
  }
  if (std::function<void(bool)> done = std::exchange(write_done_, nullptr)) done(false);
  shared_.bodies.GiveBack(std::exchange(taken_bytes_, 0));
}

void StreamConnection::ShakeHands() {
  place_.SetWaiting(weak_from_this());
  Limit(shared_.limits.header_timeout);
  socket_.AsyncHandshake([self = shared_from_this()](ErrorCode error) {
    if (error) {
      self->Abort();
      return;
    }
    self->client_certificate_ = self->socket_.PeerName();
    self->AwaitRequest(self->shared_.limits.header_timeout);
  });
}

void StreamConnection::AwaitRequest(absl::Duration time) {
  place_.SetWaiting(weak_from_this());
  Limit(time);
  if (buffer_.size() > 0) {
    ReadHeader();
  } else if (!reading_) {
    Listen();
  }
}

void StreamConnection::Listen() {
  reading_ = true;
  socket_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](ErrorCode error, size_t size) {
                            self->reading_ = false;
                            self->Heard(error, size);
                          });
}

void StreamConnection::Heard(ErrorCode error, size_t size) {
  if (error) {
    Abort();
    return;
  }
  buffer_.commit(size);
  if (lingering_) {
    Discard();
  } else if (!in_exchange_) {
    ReadHeader();
  }
  // Else it is the next request, which is read when this one is answered.
}

void StreamConnection::ReadHeader() {
  Limit(shared_.limits.header_timeout);
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_.limits.max_header_bytes));
  parser_->body_limit(shared_.limits.max_body_bytes);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](ErrorCode error, size_t) {
                            error ? self->RefuseMessage(error) : self->ReadBody();
                          });
}

void StreamConnection::RefuseMessage(ErrorCode error) {
  last_ = true;
  BeginExchange();
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    Respond(ErrorResponse(431));
  } else if (error == http::error::body_limit) {
    Respond(ErrorResponse(413));
  } else if (error.category() == make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    Respond(ErrorResponse(400));
  } else {
    Abort();
  }
}

int StreamConnection::HeadRefusal() const {
  const http::request<http::buffer_body>& message = parser_->get();
  // Of two the first would count here, and the second for somebody in between.
  if (message.count(http::field::host) > 1 || message.count(http::field::authorization) > 1) {
    return 400;
  }
  if (message.version() >= 11 && message.count(http::field::host) == 0) return 400;
  const size_t encodings = message.count(http::field::transfer_encoding);
  if (encodings == 0) return 0;
  if (message.version() < 11) return 400;
  // The parser takes a body of any other for none, and would read it as the next request.
  const bool chunked =
      encodings == 1 &&
      absl::EqualsIgnoreCase(View(message[http::field::transfer_encoding]), "chunked");
  return chunked ? 0 : 501;
}

void StreamConnection::ReadBody() {
  if (const int status = HeadRefusal(); status != 0) {
    last_ = true;
    BeginExchange();
    Respond(ErrorResponse(status));
    return;
  }
  // Now: what follows the body as a trailer is no header.
  headers_.clear();
  for (const auto& field : parser_->get()) {
    headers_.emplace(absl::AsciiStrToLower(View(field.name_string())),
                     std::string(View(field.value())));
  }
  body_.clear();
  Limit(shared_.limits.body_timeout);
  if (absl::EqualsIgnoreCase(View(parser_->get()[http::field::expect]), "100-continue")) {
    net::async_write(socket_, net::buffer(kContinue, sizeof(kContinue) - 1),
                     [self = shared_from_this()](ErrorCode error, size_t) {
                       error ? self->Abort() : self->ReadRest();
                     });
  } else {
    ReadRest();
  }
}

void StreamConnection::ReadRest() {
  piece_.resize(kPieceBytes);
  parser_->get().body().data = piece_.data();
  parser_->get().body().size = piece_.size();
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](ErrorCode error, size_t) {
                     const bool full = error == http::error::need_buffer;
                     if (error && !full) {
                       self->RefuseMessage(error);
                     } else if (!self->KeepPiece()) {
                       self->last_ = true;
                       self->BeginExchange();
                       self->Respond(ErrorResponse(503));
                     } else {
                       full ? self->ReadRest() : self->Dispatch();
                     }
                   });
}

// What was announced costs nobody anything: only what has come counts.
bool StreamConnection::KeepPiece() {
  const size_t size = piece_.size() - parser_->get().body().size;
  if (!shared_.bodies.Take(static_cast<int64_t>(size))) return false;
  taken_bytes_ += static_cast<int64_t>(size);
  body_.append(piece_.data(), size);
  return true;
}

void StreamConnection::BeginExchange() {
  place_.SetAnswering(weak_from_this());
  // A handler takes as long as it takes.
  NoLimit();
  ++exchange_;
  in_exchange_ = true;
  head_only_ = parser_->get().method() == http::verb::head;
  version_ = parser_->get().version();
  if (!parser_->get().keep_alive()) last_ = true;
}

void StreamConnection::Dispatch() {
  BeginExchange();
  const http::request<http::buffer_body>& message = parser_->get();
  HttpRequest request;
  request.method = std::string(View(message.method_string()));
  std::optional<HttpTarget> target = ParseHttpTarget(View(message.target()));
  if (!target.has_value()) {
    Respond(ErrorResponse(400));
    return;
  }
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  request.headers = std::exchange(headers_, {});
  request.client_certificate = client_certificate_;
  request.body = std::move(body_);
  body_.clear();
  piece_ = {};
  range_ = request.headers.count("range") > 0 ? request.headers["range"] : "";
  if (const auto condition = request.headers.find("if-range"); condition != request.headers.end()) {
    if_range_ = condition->second;
  } else {
    if_range_.reset();
  }
  if_none_match_ =
      request.headers.count("if-none-match") > 0 ? request.headers["if-none-match"] : "";
  extra_headers_ = shared_.extra_headers ? shared_.extra_headers(request) : HttpHeaders();
  if (shared_.filter) {
    if (std::optional<HttpResponse> refusal = shared_.filter(request)) {
      Respond(*std::move(refusal));
      return;
    }
  }
  Call(std::move(request));
}

void StreamConnection::Call(HttpRequest request) {
  const std::string method = head_only_ ? "GET" : request.method;
  bool found = false;
  for (const Route& route : shared_.routes) {
    const bool matches =
        route.is_prefix ? absl::StartsWith(request.path, route.path) : request.path == route.path;
    if (!matches) continue;
    found = true;
    if (route.method != method) continue;
    if (route.is_prefix) request.rest = request.path.substr(route.path.size());
    if (route.stream_handler) {
      // So that it is noticed when the client leaves.
      if (!reading_ && buffer_.size() == 0) Listen();
      route.stream_handler(std::move(request), NewExchange());
    } else {
      net::post(shared_.handlers, [self = shared_from_this(), &handler = route.handler,
                                   request = std::move(request)] {
        HttpResponse response;
        try {
          response = handler(request);
        } catch (...) {
          // Whatever it says is not for the client.
          response = ErrorResponse(500);
        }
        net::post(self->socket_.get_executor(), [self, response = std::move(response)]() mutable {
          self->Respond(std::move(response));
        });
      });
    }
    return;
  }
  Respond(ErrorResponse(found ? 405 : 404));
}

std::shared_ptr<Connection> NewConnection(Shared* shared, tcp::socket socket,
                                          std::shared_ptr<net::ssl::context> context) {
  return std::make_shared<StreamConnection>(shared, std::move(socket), std::move(context));
}

}  // namespace plumbline::http_internal
