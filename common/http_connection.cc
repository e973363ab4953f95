#include "common/http_connection.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/http_message.h"

namespace plumbline::http_internal {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::beast::error_code;
using net::ip::tcp;

constexpr int64_t kPieceBytes = 64 << 10;
// How long a client may take to see that an answer was the last.
constexpr absl::Duration kLingerTimeout = absl::Seconds(1);
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

absl::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

HttpResponse ErrorResponse(int status) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat("error ", status, "\n");
  return response;
}

// All members are used on the connection's strand alone, but for those that other threads may call,
// which post to it.
template <typename Stream>
class StreamConnection final : public Connection,
                               public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  // `context`: of TLS; kept as long as the stream.
  StreamConnection(Shared* shared, Stream stream, std::shared_ptr<ssl::context> context)
      : place_(&shared->registry),
        shared_(*shared),
        context_(std::move(context)),
        stream_(std::move(stream)),
        timer_(stream_.get_executor()),
        buffer_(shared->limits.max_header_bytes + kPieceBytes) {}

  ~StreamConnection() override { shared_.bodies.GiveBack(taken_bytes_); }

  void Run() override {
    net::dispatch(stream_.get_executor(), [self = this->shared_from_this()] {
      error_code ignored;
      self->stream_.lowest_layer().set_option(tcp::no_delay(true), ignored);
      if constexpr (kIsTls) {
        self->ShakeHands();
      } else {
        self->AwaitRequest(self->shared_.limits.header_timeout);
      }
    });
  }

  void Close() override {
    net::post(stream_.get_executor(), [self = this->shared_from_this()] { self->Abort(); });
  }

  void CloseAfterAnswer() override {
    net::post(stream_.get_executor(), [self = this->shared_from_this()] { self->last_ = true; });
  }

 private:
  static constexpr bool kIsTls = !std::is_same_v<Stream, tcp::socket>;

  // The stream of one exchange. Its calls reach the connection only while that exchange is on.
  class Exchange final : public HttpStream {
   public:
    Exchange(std::shared_ptr<StreamConnection> connection, int64_t number)
        : connection_(std::move(connection)), number_(number) {}

    // Nobody can finish it any more. One that was finished is not aborted: its last bytes may still
    // be on their way, and the connection is the next request's.
    ~Exchange() override {
      if (!finished_) Post([](StreamConnection& connection) { connection.Abort(); });
    }

    void Start(int status, const HttpHeaders& headers) override {
      Post([status, headers](StreamConnection& connection) {
        connection.StartStream(status, headers);
      });
    }

    void Write(std::string bytes, std::function<void(bool)> done) override {
      auto shared = std::make_shared<std::function<void(bool)>>(std::move(done));
      Post(
          [bytes = std::move(bytes), shared](StreamConnection& connection) mutable {
            connection.WriteToStream(std::move(bytes), std::move(*shared));
          },
          [shared] { (*shared)(false); });
    }

    void Finish() override {
      finished_ = true;
      Post([](StreamConnection& connection) { connection.FinishStream(); });
    }

    void OnceLeft(std::function<void()> left) override {
      auto shared = std::make_shared<std::function<void()>>(std::move(left));
      Post([shared](StreamConnection& connection) { connection.left_ = std::move(*shared); },
           [shared] { (*shared)(); });
    }

   private:
    template <typename Call, typename Otherwise>
    void Post(Call call, Otherwise otherwise) {
      net::post(connection_->stream_.get_executor(),
                [connection = connection_, number = number_, call = std::move(call),
                 otherwise = std::move(otherwise)]() mutable {
                  const bool on = connection->exchange_ == number && connection->in_exchange_;
                  on ? call(*connection) : otherwise();
                });
    }

    template <typename Call>
    void Post(Call call) {
      Post(std::move(call), [] {});
    }

    const std::shared_ptr<StreamConnection> connection_;
    const int64_t number_;
    bool finished_ = false;
  };

  // Breaks the connection off when the time is over, unless told of another before.
  void Limit(absl::Duration time) {
    timer_.expires_after(absl::ToChronoNanoseconds(time));
    timer_.async_wait([self = this->shared_from_this()](error_code error) {
      const bool over = self->timer_.expiry() <= net::steady_timer::clock_type::now();
      if (!error && over) self->Abort();
    });
  }

  // The client has left, or must.
  void Abort() {
    timer_.expires_at(net::steady_timer::time_point::max());
    error_code ignored;
    stream_.lowest_layer().close(ignored);
    EndExchange();
  }

  // Nothing that was told of the exchange counts any more.
  void EndExchange() {
    in_exchange_ = false;
    if (std::function<void()> left = std::exchange(left_, nullptr)) {
      if (!stream_.lowest_layer().is_open()) left();
    }
    if (std::function<void(bool)> done = std::exchange(write_done_, nullptr)) done(false);
    shared_.bodies.GiveBack(std::exchange(taken_bytes_, 0));
  }

  void ShakeHands() {
    place_.SetWaiting(this->weak_from_this());
    Limit(shared_.limits.header_timeout);
    stream_.async_handshake(ssl::stream_base::server,
                            [self = this->shared_from_this()](error_code error) {
                              if (error) {
                                self->Abort();
                                return;
                              }
                              self->client_certificate_ = self->PeerName();
                              self->AwaitRequest(self->shared_.limits.header_timeout);
                            });
  }

  // The common name of the client's certificate, which the handshake has verified; "": it has none,
  // or several.
  std::string PeerName() {
    const std::unique_ptr<X509, void (*)(X509*)> certificate(
        SSL_get1_peer_certificate(stream_.native_handle()), &X509_free);
    if (certificate == nullptr) return "";
    X509_NAME* const subject = X509_get_subject_name(certificate.get());
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) return "";
    std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
    return name;
  }

  // ---- Requests

  void AwaitRequest(absl::Duration time) {
    place_.SetWaiting(this->weak_from_this());
    Limit(time);
    if (buffer_.size() > 0) {
      ReadHeader();
    } else if (!reading_) {
      Listen();
    }
  }

  // Waits for bytes: the beginning of the next request, or the end of the connection.
  void Listen() {
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this()](error_code error, size_t size) {
                              self->reading_ = false;
                              self->Heard(error, size);
                            });
  }

  void Heard(error_code error, size_t size) {
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

  void ReadHeader() {
    Limit(shared_.limits.header_timeout);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.limits.max_header_bytes));
    parser_->body_limit(shared_.limits.max_body_bytes);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, size_t) {
                              error ? self->RefuseMessage(error) : self->ReadBody();
                            });
  }

  // Answers what is no request; the rest of the connection cannot be read.
  void RefuseMessage(error_code error) {
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

  void ReadBody() {
    const int64_t bytes = static_cast<int64_t>(
        parser_->content_length().value_or(parser_->chunked() ? shared_.limits.max_body_bytes : 0));
    if (!shared_.bodies.Take(bytes)) {
      last_ = true;
      BeginExchange();
      Respond(ErrorResponse(503));
      return;
    }
    taken_bytes_ = bytes;
    Limit(shared_.limits.body_timeout);
    if (absl::EqualsIgnoreCase(View(parser_->get()[http::field::expect]), "100-continue")) {
      net::async_write(stream_, net::buffer(kContinue, sizeof(kContinue) - 1),
                       [self = this->shared_from_this()](error_code error, size_t) {
                         error ? self->Abort() : self->ReadRest();
                       });
    } else {
      ReadRest();
    }
  }

  void ReadRest() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) {
                       error ? self->RefuseMessage(error) : self->Dispatch();
                     });
  }

  void BeginExchange() {
    place_.SetAnswering(this->weak_from_this());
    // A handler takes as long as it takes.
    timer_.expires_at(net::steady_timer::time_point::max());
    ++exchange_;
    in_exchange_ = true;
    head_only_ = parser_->get().method() == http::verb::head;
    version_ = parser_->get().version();
    if (!parser_->get().keep_alive()) last_ = true;
  }

  void Dispatch() {
    BeginExchange();
    http::request<http::string_body> message = parser_->release();
    HttpRequest request;
    request.method = std::string(View(message.method_string()));
    std::optional<HttpTarget> target = ParseHttpTarget(View(message.target()));
    if (!target.has_value()) {
      Respond(ErrorResponse(400));
      return;
    }
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    for (const auto& field : message) {
      request.headers.emplace(absl::AsciiStrToLower(View(field.name_string())),
                              std::string(View(field.value())));
    }
    request.client_certificate = client_certificate_;
    request.body = std::move(message.body());
    // Of a body in chunks the length was not known.
    const int64_t spare = taken_bytes_ - static_cast<int64_t>(request.body.size());
    shared_.bodies.GiveBack(spare);
    taken_bytes_ -= spare;
    range_ = request.headers.count("range") > 0 ? request.headers["range"] : "";
    if (const auto condition = request.headers.find("if-range");
        condition != request.headers.end()) {
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

  void Call(HttpRequest request) {
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
        route.stream_handler(std::move(request),
                             std::make_shared<Exchange>(this->shared_from_this(), exchange_));
      } else {
        net::post(shared_.handlers, [self = this->shared_from_this(), &handler = route.handler,
                                     request = std::move(request)] {
          HttpResponse response;
          try {
            response = handler(request);
          } catch (...) {
            // Whatever it says is not for the client.
            response = ErrorResponse(500);
          }
          net::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
            self->Respond(std::move(response));
          });
        });
      }
      return;
    }
    Respond(ErrorResponse(found ? 405 : 404));
  }

  // ---- Whole answers

  struct Body {
    std::string bytes;
    std::optional<HttpFile> file;
    int64_t offset = 0;
    int64_t left = 0;
  };

  void Respond(HttpResponse response) {
    if (!in_exchange_) return;
    auto body = std::make_shared<Body>();
    http::response<http::empty_body> head;
    head.result(static_cast<unsigned>(response.status));
    if (!response.content_type.empty()) head.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) head.set(name, value);
    if (response.file.has_value()) {
      body->file = std::move(response.file);
      SelectFile(&head, body.get());
    } else {
      body->bytes = std::move(response.body);
      body->left = static_cast<int64_t>(body->bytes.size());
    }
    if (head.result() != http::status::not_modified && head.result() != http::status::no_content) {
      head.content_length(static_cast<uint64_t>(body->left));
    }
    if (head_only_) body->left = 0;
    WriteHead(std::move(head), [this, body] { WriteBody(body); });
  }

  // The part of the file that the request asks for.
  void SelectFile(http::response<http::empty_body>* head, Body* body) const {
    const std::string tag = absl::StrCat("\"", body->file->entity_tag, "\"");
    head->set(http::field::accept_ranges, "bytes");
    if (!body->file->entity_tag.empty()) head->set(http::field::etag, tag);
    if (NamesEntityTag(if_none_match_, body->file->entity_tag)) {
      head->result(http::status::not_modified);
      return;
    }
    const int64_t size = body->file->size_bytes;
    body->left = size;
    if (if_range_.has_value() && *if_range_ != tag) return;
    ByteRange range;
    switch (ParseRange(range_, size, &range)) {
      case RangeKind::kWhole:
        return;
      case RangeKind::kUnsatisfiable:
        head->result(http::status::range_not_satisfiable);
        head->set(http::field::content_range, absl::StrCat("bytes */", size));
        body->left = 0;
        return;
      case RangeKind::kPart:
        head->result(http::status::partial_content);
        head->set(
            http::field::content_range,
            absl::StrCat("bytes ", range.offset, "-", range.offset + range.length - 1, "/", size));
        body->offset = range.offset;
        body->left = range.length;
        return;
    }
  }

  void WriteBody(const std::shared_ptr<Body>& body) {
    if (body->left == 0) {
      AnswerGiven();
      return;
    }
    const int64_t length = std::min(body->left, kPieceBytes);
    if (!body->file.has_value()) {
      WritePiece(body, net::buffer(body->bytes.data() + body->offset, static_cast<size_t>(length)));
      return;
    }
    net::post(shared_.handlers, [self = this->shared_from_this(), body, length] {
      absl::StatusOr<std::string> bytes = body->file->read(body->offset, length);
      net::post(self->stream_.get_executor(), [self, body, bytes = std::move(bytes)]() mutable {
        if (!bytes.ok() || bytes->empty()) {
          self->Abort();
          return;
        }
        body->bytes = *std::move(bytes);
        self->WritePiece(body, net::buffer(body->bytes));
      });
    });
  }

  void WritePiece(const std::shared_ptr<Body>& body, net::const_buffer piece) {
    if (!in_exchange_) return;
    Limit(shared_.limits.write_timeout);
    net::async_write(stream_, piece,
                     [self = this->shared_from_this(), body](error_code error, size_t n) {
                       if (error) {
                         self->Abort();
                         return;
                       }
                       body->offset += static_cast<int64_t>(n);
                       body->left -= static_cast<int64_t>(n);
                       self->WriteBody(body);
                     });
  }

  template <typename Then>
  void WriteHead(http::response<http::empty_body> head, Then then) {
    for (const auto& [name, value] : std::exchange(extra_headers_, {})) head.insert(name, value);
    head.version(version_);
    head.keep_alive(!last_);
    head_ = std::move(head);
    serializer_.emplace(head_);
    Limit(shared_.limits.write_timeout);
    http::async_write_header(
        stream_, *serializer_,
        [self = this->shared_from_this(), then = std::move(then)](
            error_code error, size_t) mutable { error ? self->Abort() : then(); });
  }

  void AnswerGiven() {
    EndExchange();
    if (last_) {
      Linger();
    } else {
      AwaitRequest(shared_.limits.idle_timeout);
    }
  }

  // Closing with bytes unread would take the answer away from a client that still sends.
  void Linger() {
    Limit(kLingerTimeout);
    lingering_ = true;
    if constexpr (kIsTls) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) { self->Abort(); });
    } else {
      error_code ignored;
      stream_.shutdown(tcp::socket::shutdown_send, ignored);
      if (!reading_) Discard();
    }
  }

  void Discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this()](error_code error, size_t) {
                              error ? self->Abort() : self->Discard();
                            });
  }

  // ---- Answers in pieces

  void StartStream(int status, const HttpHeaders& headers) {
    http::response<http::empty_body> head;
    head.result(static_cast<unsigned>(status));
    for (const auto& [name, value] : headers) head.set(name, value);
    // Without chunks only the end of the connection can end it.
    chunked_ = version_ >= 11;
    if (!chunked_) last_ = true;
    head.chunked(chunked_);
    writing_ = true;
    WriteHead(std::move(head), [this] { StreamWritten(); });
  }

  void WriteToStream(std::string bytes, std::function<void(bool)> done) {
    stream_bytes_ = std::move(bytes);
    write_done_ = std::move(done);
    stream_offset_ = 0;
    if (!writing_) WriteStream();
  }

  void FinishStream() {
    finishing_ = true;
    if (!writing_) WriteStream();
  }

  // The next of what there is to write.
  void WriteStream() {
    if (write_done_ != nullptr) {
      if (stream_offset_ == stream_bytes_.size()) {
        const std::function<void(bool)> done = std::exchange(write_done_, nullptr);
        // So that the other side may take its time.
        timer_.expires_at(net::steady_timer::time_point::max());
        done(true);
        return;
      }
      const size_t size =
          std::min(stream_bytes_.size() - stream_offset_, static_cast<size_t>(kPieceBytes));
      const net::const_buffer piece(stream_bytes_.data() + stream_offset_, size);
      stream_offset_ += size;
      if (chunked_) {
        WriteToSocket(http::make_chunk(piece));
      } else {
        WriteToSocket(piece);
      }
    } else if (finishing_) {
      finishing_ = false;
      if (chunked_) {
        closing_stream_ = true;
        WriteToSocket(http::make_chunk_last());
      } else {
        AnswerGiven();
      }
    }
  }

  template <typename Buffers>
  void WriteToSocket(const Buffers& buffers) {
    writing_ = true;
    Limit(shared_.limits.write_timeout);
    net::async_write(stream_, buffers, [self = this->shared_from_this()](error_code error, size_t) {
      error ? self->Abort() : self->StreamWritten();
    });
  }

  void StreamWritten() {
    writing_ = false;
    timer_.expires_at(net::steady_timer::time_point::max());
    if (std::exchange(closing_stream_, false)) {
      AnswerGiven();
    } else {
      WriteStream();
    }
  }

  // First, so that it is left last.
  Registry::Place place_;
  Shared& shared_;
  const std::shared_ptr<ssl::context> context_;
  Stream stream_;
  net::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string client_certificate_;
  int64_t taken_bytes_ = 0;
  bool reading_ = false;  // Listen waits.
  bool last_ = false;     // No request after this answer.
  bool lingering_ = false;

  int64_t exchange_ = 0;  // Counts them.
  bool in_exchange_ = false;
  bool head_only_ = false;
  unsigned version_ = 11;
  HttpHeaders extra_headers_;
  std::string range_;
  std::optional<std::string> if_range_;
  std::string if_none_match_;
  http::response<http::empty_body> head_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;

  std::function<void()> left_;
  std::string stream_bytes_;
  size_t stream_offset_ = 0;
  std::function<void(bool)> write_done_;
  bool chunked_ = false;
  bool writing_ = false;
  bool finishing_ = false;
  bool closing_stream_ = false;
};

}  // namespace

std::shared_ptr<Connection> NewConnection(Shared* shared, tcp::socket socket,
                                          std::shared_ptr<ssl::context> context) {
  if (context == nullptr) {
    return std::make_shared<StreamConnection<tcp::socket>>(shared, std::move(socket), nullptr);
  }
  ssl::stream<tcp::socket> stream(std::move(socket), *context);
  return std::make_shared<StreamConnection<ssl::stream<tcp::socket>>>(shared, std::move(stream),
                                                                      std::move(context));
}

}  // namespace plumbline::http_internal
