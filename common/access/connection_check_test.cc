#include "common/access/connection_check.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/files.h"
#include "common/tls/test_certificates.h"

namespace plumbline {
namespace {

// Whoever sends a record of a handshake byte by byte is not listened to for as long as it sends:
// else this does not end.
TEST(ConnectionCheckTest, NobodyHoldsUpWhoAsks) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &size), 0);
  std::thread server([listener] {
    const int client = accept(listener, nullptr, nullptr);
    // A server's hello of 16 KiB, which never comes to its end.
    send(client, "\x16\x03\x03\x40\x00\x02", 6, MSG_NOSIGNAL);
    while (send(client, "", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(5));
    close(client);
  });
  ClientFiles files;
  files.ca = testing::TempDir() + "/authority.pem";
  ASSERT_TRUE(WriteFileAtomically(files.ca, TestAuthority().certificate()).ok());
  const std::string to = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  EXPECT_TRUE(CheckConnection(to, files, absl::Milliseconds(100)).ok());
  server.join();
  close(listener);
}

}  // namespace
}  // namespace plumbline
