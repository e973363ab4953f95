#include "common/access/server_addresses.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"

namespace plumbline {
namespace {

// Generous: it only ever decides that a test fails.
constexpr absl::Duration kLimit = absl::Minutes(1);

TEST(ServerAddressesTest, FindsWhatIsThere) {
  const ServerAddresses v4 = FindServer("127.0.0.1:80", kLimit);
  ASSERT_EQ(v4.all.size(), 1u);
  const auto* const address = reinterpret_cast<const sockaddr_in*>(&v4.all[0].bytes);
  EXPECT_EQ(address->sin_family, AF_INET);
  EXPECT_EQ(ntohs(address->sin_port), 80);
  EXPECT_EQ(ntohl(address->sin_addr.s_addr), INADDR_LOOPBACK);
  const ServerAddresses v6 = FindServer("[::1]:80", kLimit);
  ASSERT_EQ(v6.all.size(), 1u);
  EXPECT_EQ(v6.all[0].bytes.ss_family, AF_INET6);
  const ServerAddresses path = FindServer("unix:/tmp/a", kLimit);
  ASSERT_EQ(path.all.size(), 1u);
  EXPECT_STREQ(reinterpret_cast<const sockaddr_un*>(&path.all[0].bytes)->sun_path, "/tmp/a");
  EXPECT_TRUE(FindServer(absl::StrCat("unix:/", std::string(200, 'a')), kLimit).all.empty());
  EXPECT_TRUE(FindServer("no address", kLimit).all.empty());
}

TEST(ServerAddressesTest, ANameThatNobodyHasIsNotOneThatNobodyTellsOf) {
  for (const int error : {EAI_NONAME, EAI_AGAIN, EAI_FAIL}) {
    const ServerAddresses none = FindServer(
        "a:1", kLimit,
        [error](const char*, const char*, const addrinfo*, addrinfo**) { return error; });
    EXPECT_TRUE(none.all.empty());
    EXPECT_EQ(none.is_unknown, error == EAI_NONAME);
  }
}

// Of name servers that do not answer, however often they are asked: else this does not end.
TEST(ServerAddressesTest, ALookupThatTakesTooLongIsLeftBehind) {
  const auto over = std::make_shared<absl::Notification>();
  const auto left = std::make_shared<absl::BlockingCounter>(4);
  for (int i = 0; i < 20; ++i) {
    const ServerAddresses none =
        FindServer("a:1", absl::Milliseconds(1),
                   [over, left](const char*, const char*, const addrinfo*, addrinfo**) {
                     over->WaitForNotification();
                     left->DecrementCount();
                     return EAI_AGAIN;
                   });
    EXPECT_TRUE(none.all.empty());
    EXPECT_FALSE(none.is_unknown);
  }
  over->Notify();
  // Four, and no more: a fifth would take the count below zero.
  left->Wait();
}

}  // namespace
}  // namespace plumbline
