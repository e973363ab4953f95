#ifndef PLUMBLINE_COMMON_TEST_LISTENER_H_
#define PLUMBLINE_COMMON_TEST_LISTENER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace plumbline {

// A loopback address that other programs, and other tests, hardly use: a port of it that was free a
// moment ago still is.
inline std::string OwnLoopbackHost() {
  std::random_device random;
  const auto part = [&random] { return random() % 254 + 1; };
  return absl::StrCat("127.", part(), ".", part(), ".", part());
}

// Listens on a free port of an OwnLoopbackHost for as long as it lives; for tests.
class TestListener {
 public:
  TestListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const std::string host = OwnLoopbackHost();
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    address_ = absl::StrCat(host, ":", ntohs(address.sin_port));
  }
  TestListener(const TestListener&) = delete;
  TestListener& operator=(const TestListener&) = delete;
  ~TestListener() { close(socket_); }

  // "HOST:PORT".
  const std::string& address() const { return address_; }
  // The next connection's socket, which the caller closes. Blocks.
  int Accept() const { return accept(socket_, nullptr, nullptr); }

 private:
  const int socket_;
  std::string address_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_TEST_LISTENER_H_
