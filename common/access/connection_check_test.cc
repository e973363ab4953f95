#include "common/access/connection_check.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/files.h"
#include "common/test_listener.h"
#include "common/tls/test_certificates.h"

namespace plumbline {
namespace {

// Whoever sends a record of a handshake byte by byte is not listened to for as long as it sends:
// else this does not end.
TEST(ConnectionCheckTest, NobodyHoldsUpWhoAsks) {
  const TestListener listener;
  std::thread server([&listener] {
    const int client = listener.Accept();
    // A server's hello of 16 KiB, which never comes to its end.
    send(client, "\x16\x03\x03\x40\x00\x02", 6, MSG_NOSIGNAL);
    while (send(client, "", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(5));
    close(client);
  });
  ClientFiles files;
  files.ca = testing::TempDir() + "/authority.pem";
  ASSERT_TRUE(WriteFileAtomically(files.ca, TestAuthority().certificate()).ok());
  EXPECT_TRUE(CheckConnection(listener.address(), files, absl::Milliseconds(100)).ok());
  server.join();
}

}  // namespace
}  // namespace plumbline
