#ifndef PLUMBLINE_COMMON_RAW_CLIENT_H_
#define PLUMBLINE_COMMON_RAW_CLIENT_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace plumbline {

// A client that says what it wants to, when it wants to, to a server of this machine; for tests.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    // Generous: it only ever decides that a test fails.
    const timeval limit = {60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() {
    if (socket_ >= 0) close(socket_);
  }

  void Send(const std::string& text) const {
    send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }

  // What comes until `end` has come; all until the server closes if it never does.
  std::string ReadUntil(const std::string& end) const {
    std::string all;
    char c;
    while (!absl::EndsWith(all, end) && recv(socket_, &c, 1, 0) == 1) all.push_back(c);
    return all;
  }
  // The next `size` bytes; fewer if the server closes before.
  std::string Read(size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t read = recv(socket_, bytes.data(), size, MSG_WAITALL);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(read, 0)));
    return bytes;
  }
  std::string ReadAll() const { return ReadUntil("\n\n\n no such end"); }

 private:
  int socket_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_RAW_CLIENT_H_
