#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/http_message.h"
#include "common/http_stream_connection.h"

namespace plumbline::http_internal {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using net::ip::tcp;

// How long a client may take to see that an answer was the last.
constexpr absl::Duration kLingerTimeout = absl::Seconds(1);

// Whether each stays within its line: what is sent of an artifact or an error is not ours alone.
bool AreFields(const HttpHeaders& headers) {
  return std::all_of(headers.begin(), headers.end(), [](const auto& header) {
    return IsFieldValue(header.first) && IsFieldValue(header.second);
  });
}

}  // namespace

HttpResponse ErrorResponse(int status) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat("error ", status, "\n");
  return response;
}

// ---- Whole answers

void StreamConnection::Respond(HttpResponse response) {
  if (!in_exchange_) return;
  if (!AreFields(response.headers) || !IsFieldValue(response.content_type)) {
    response = ErrorResponse(500);
  }
  auto body = std::make_shared<Body>();
  Head head;
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

void StreamConnection::SelectFile(Head* head, Body* body) const {
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

void StreamConnection::WriteBody(const std::shared_ptr<Body>& body) {
  if (body->left == 0) {
    AnswerGiven();
    return;
  }
  const int64_t length = std::min(body->left, kPieceBytes);
  if (!body->file.has_value()) {
    WritePiece(body, net::buffer(body->bytes.data() + body->offset, static_cast<size_t>(length)));
    return;
  }
  net::post(shared_.handlers, [self = shared_from_this(), body, length] {
    absl::StatusOr<std::string> bytes = body->file->read(body->offset, length);
    net::post(self->socket_.get_executor(), [self, body, bytes = std::move(bytes)]() mutable {
      if (!bytes.ok() || bytes->empty()) {
        self->Abort();
        return;
      }
      body->bytes = *std::move(bytes);
      self->WritePiece(body, net::buffer(body->bytes));
    });
  });
}

void StreamConnection::WritePiece(const std::shared_ptr<Body>& body, net::const_buffer piece) {
  if (!in_exchange_) return;
  BeginWriting();
  net::async_write(socket_, piece, [self = shared_from_this(), body](ErrorCode error, size_t n) {
    self->EndWriting();
    if (error) {
      self->Abort();
      return;
    }
    body->offset += static_cast<int64_t>(n);
    body->left -= static_cast<int64_t>(n);
    self->WriteBody(body);
  });
}

void StreamConnection::WriteHead(Head head, std::function<void()> then) {
  for (const auto& [name, value] : std::exchange(extra_headers_, {})) head.insert(name, value);
  head.version(version_);
  head.keep_alive(!last_);
  head_ = std::move(head);
  serializer_.emplace(head_);
  BeginWriting();
  http::async_write_header(
      socket_, *serializer_,
      [self = shared_from_this(), then = std::move(then)](ErrorCode error, size_t) mutable {
        self->EndWriting();
        error ? self->Abort() : then();
      });
}

void StreamConnection::AnswerGiven() {
  EndExchange();
  if (last_) {
    Linger();
  } else {
    AwaitRequest(shared_.limits.idle_timeout);
  }
}

void StreamConnection::Linger() {
  Limit(kLingerTimeout);
  lingering_ = true;
  if (socket_.is_tls()) {
    socket_.AsyncShutdown([self = shared_from_this()](ErrorCode) { self->Abort(); });
  } else {
    ErrorCode ignored;
    socket_.tcp().shutdown(tcp::socket::shutdown_send, ignored);
    if (!reading_) Discard();
  }
}

void StreamConnection::Discard() {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](ErrorCode error, size_t) {
                            error ? self->Abort() : self->Discard();
                          });
}

// ---- Answers in pieces

// The stream of one exchange. Its calls reach the connection only while that exchange is on.
class StreamConnection::Exchange final : public HttpStream {
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
    net::post(connection_->socket_.get_executor(),
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

std::shared_ptr<HttpStream> StreamConnection::NewExchange() {
  return std::make_shared<Exchange>(shared_from_this(), exchange_);
}

void StreamConnection::StartStream(int status, const HttpHeaders& headers) {
  if (!AreFields(headers)) {
    Abort();
    return;
  }
  Head head;
  head.result(static_cast<unsigned>(status));
  for (const auto& [name, value] : headers) head.set(name, value);
  // Without chunks only the end of the connection can end it.
  chunked_ = version_ >= 11;
  if (!chunked_) last_ = true;
  head.chunked(chunked_);
  writing_ = true;
  WriteHead(std::move(head), [this] { StreamWritten(); });
}

void StreamConnection::WriteToStream(std::string bytes, std::function<void(bool)> done) {
  stream_bytes_ = std::move(bytes);
  write_done_ = std::move(done);
  stream_offset_ = 0;
  if (!writing_) WriteStream();
}

void StreamConnection::FinishStream() {
  finishing_ = true;
  if (!writing_) WriteStream();
}

void StreamConnection::WriteStream() {
  if (write_done_ != nullptr) {
    if (stream_offset_ == stream_bytes_.size()) {
      const std::function<void(bool)> done = std::exchange(write_done_, nullptr);
      // So that the other side may take its time.
      NoLimit();
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
void StreamConnection::WriteToSocket(const Buffers& buffers) {
  writing_ = true;
  BeginWriting();
  net::async_write(socket_, buffers, [self = shared_from_this()](ErrorCode error, size_t) {
    self->EndWriting();
    error ? self->Abort() : self->StreamWritten();
  });
}

void StreamConnection::StreamWritten() {
  writing_ = false;
  NoLimit();
  if (std::exchange(closing_stream_, false)) {
    AnswerGiven();
  } else {
    WriteStream();
  }
}

}  // namespace plumbline::http_internal
