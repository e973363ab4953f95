// The socket of a connection, with TLS or without, to read from and write to.
#ifndef PLUMBLINE_COMMON_HTTP_SOCKET_H_
#define PLUMBLINE_COMMON_HTTP_SOCKET_H_

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace plumbline::http_internal {

// An AsyncReadStream and AsyncWriteStream, as Asio and Beast name what they read from and write to.
class Socket {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;

  // With TLS unless `context` is null.
  Socket(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> context)
      : context_(std::move(context)), stream_(Make(std::move(socket), context_.get())) {}

  bool is_tls() const { return std::holds_alternative<Tls>(stream_); }
  executor_type get_executor() { return tcp().get_executor(); }
  // What is below TLS.
  boost::asio::ip::tcp::socket& tcp() {
    return is_tls() ? std::get<Tls>(stream_).next_layer() : std::get<Plain>(stream_);
  }

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (is_tls()) {
      std::get<Tls>(stream_).async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      std::get<Plain>(stream_).async_read_some(buffers, std::forward<Handler>(handler));
    }
  }

  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (is_tls()) {
      std::get<Tls>(stream_).async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      std::get<Plain>(stream_).async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

  // Of TLS alone.
  template <typename Handler>
  void AsyncHandshake(Handler&& handler) {
    std::get<Tls>(stream_).async_handshake(boost::asio::ssl::stream_base::server,
                                           std::forward<Handler>(handler));
  }
  template <typename Handler>
  void AsyncShutdown(Handler&& handler) {
    std::get<Tls>(stream_).async_shutdown(std::forward<Handler>(handler));
  }
  // CommonNameOf the client's certificate, which the handshake has verified; "": it has none.
  std::string PeerName();

 private:
  using Plain = boost::asio::ip::tcp::socket;
  using Tls = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;
  using Stream = std::variant<Plain, Tls>;

  static Stream Make(Plain socket, boost::asio::ssl::context* context) {
    if (context == nullptr) return Stream(std::in_place_type<Plain>, std::move(socket));
    return Stream(std::in_place_type<Tls>, std::move(socket), *context);
  }

  const std::shared_ptr<boost::asio::ssl::context> context_;  // As long as the stream.
  Stream stream_;
};

}  // namespace plumbline::http_internal

#endif  // PLUMBLINE_COMMON_HTTP_SOCKET_H_
