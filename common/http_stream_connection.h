// What is read and answered on one connection of an HttpServer: requests in
// http_stream_connection.cc, answers in http_answers.cc. For these alone.
#ifndef PLUMBLINE_COMMON_HTTP_STREAM_CONNECTION_H_
#define PLUMBLINE_COMMON_HTTP_STREAM_CONNECTION_H_

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/http_connection.h"
#include "common/http_socket.h"

namespace plumbline::http_internal {

// Bytes that are read or written at once.
inline constexpr int64_t kPieceBytes = 64 << 10;

// "error STATUS", which tells nothing else.
HttpResponse ErrorResponse(int status);

// All members are used on the connection's strand alone, but for those that other threads may call,
// which post to it.
class StreamConnection final : public Connection,
                               public std::enable_shared_from_this<StreamConnection> {
 public:
  // `context`: of TLS, or null.
  StreamConnection(Shared* shared, boost::asio::ip::tcp::socket socket,
                   std::shared_ptr<boost::asio::ssl::context> context);
  ~StreamConnection() override;

  void Run() override;
  void Close() override;
  void CloseAfterAnswer() override;
  absl::Duration StuckFor() const override;

 private:
  using ErrorCode = boost::beast::error_code;
  using Head = boost::beast::http::response<boost::beast::http::empty_body>;
  class Exchange;

  // A whole answer.
  struct Body {
    std::string bytes;
    std::optional<HttpFile> file;
    int64_t offset = 0;
    int64_t left = 0;
  };

  // Breaks the connection off when the time is over, unless told of another before.
  void Limit(absl::Duration time);
  void NoLimit();
  // Around each writing of a piece of an answer.
  void BeginWriting();
  void EndWriting();
  // The client has left, or must.
  void Abort();

  // ---- Requests
  void ShakeHands();
  void AwaitRequest(absl::Duration time);
  // Waits for bytes: the beginning of the next request, or the end of the connection.
  void Listen();
  void Heard(ErrorCode error, size_t size);
  void ReadHeader();
  // Answers what is no request; the rest of the connection cannot be read.
  void RefuseMessage(ErrorCode error);
  void ReadBody();
  // The status to refuse what was read of the request with, before its body; 0: none.
  int HeadRefusal() const;
  // The next piece of it.
  void ReadRest();
  // Keeps a piece, if there is room for it.
  bool KeepPiece();
  void BeginExchange();
  // Nothing that was told of the exchange counts any more.
  void EndExchange();
  void Dispatch();
  void Call(HttpRequest request);

  // ---- Whole answers
  void Respond(HttpResponse response);
  // The part of the file that the request asks for.
  void SelectFile(Head* head, Body* body) const;
  void WriteBody(const std::shared_ptr<Body>& body);
  void WritePiece(const std::shared_ptr<Body>& body, boost::asio::const_buffer piece);
  void WriteHead(Head head, std::function<void()> then);
  void AnswerGiven();
  // Closing with bytes unread would take the answer away from a client that still sends.
  void Linger();
  void Discard();

  // ---- Answers in pieces
  std::shared_ptr<HttpStream> NewExchange();
  void StartStream(int status, const HttpHeaders& headers);
  void WriteToStream(std::string bytes, std::function<void(bool)> done);
  void FinishStream();
  // The next of what there is to write.
  void WriteStream();
  template <typename Buffers>
  void WriteToSocket(const Buffers& buffers);
  void StreamWritten();

  // First, so that it is left last.
  Registry::Place place_;
  Shared& shared_;
  Socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parser_;
  std::vector<char> piece_;  // Of a body that is being read.
  std::string body_;
  std::map<std::string, std::string> headers_;  // Of the request whose body is being read.
  std::string client_certificate_;
  int64_t taken_bytes_ = 0;
  // Of the clock of timer_, when what is being written was begun; 0: nothing is.
  std::atomic<int64_t> writing_since_{0};
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
  Head head_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>>
      serializer_;

  std::function<void()> left_;
  std::string stream_bytes_;
  size_t stream_offset_ = 0;
  std::function<void(bool)> write_done_;
  bool chunked_ = false;
  bool writing_ = false;
  bool finishing_ = false;
  bool closing_stream_ = false;
};

}  // namespace plumbline::http_internal

#endif  // PLUMBLINE_COMMON_HTTP_STREAM_CONNECTION_H_
