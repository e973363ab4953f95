// Whose connections are counted together.
#include <gtest/gtest.h>

#include <string>

#include "common/http_connection.h"

namespace plumbline::http_internal {
namespace {

std::string Peer(const char* address, bool limits_loopback = false) {
  HttpLimits limits;
  limits.limits_loopback = limits_loopback;
  return PeerAt(boost::asio::ip::make_address(address), limits);
}

TEST(PeerTest, AnIpv6NetworkOf64BitsIsOne) {
  const std::string peer = Peer("2001:db8:1:2::1");
  EXPECT_NE(peer, "");
  EXPECT_EQ(Peer("2001:db8:1:2:ffff:ffff:ffff:ffff"), peer);
  EXPECT_EQ(Peer("2001:db8:1:2::"), peer);
  EXPECT_NE(Peer("2001:db8:1:3::1"), peer);
  EXPECT_NE(Peer("2001:db8:1:2::1"), Peer("2001:db8::1:2:0:0:1"));
  EXPECT_NE(Peer("fe80::1"), peer);
}

TEST(PeerTest, AnIpv4AddressIsOneHoweverItIsWritten) {
  const std::string peer = Peer("192.0.2.1");
  EXPECT_NE(peer, "");
  EXPECT_NE(Peer("192.0.2.2"), peer);
  // As a socket of both families tells it: of the same 64 bits all of them.
  EXPECT_EQ(Peer("::ffff:192.0.2.1"), peer);
  EXPECT_NE(Peer("::ffff:192.0.2.2"), peer);
}

TEST(PeerTest, LoopbackIsNobodyUnlessItIsCounted) {
  for (const char* const address : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_EQ(Peer(address), "") << address;
    EXPECT_NE(Peer(address, true), "") << address;
  }
}

TEST(RegistryTest, CountsByPeerWhileThereAreAny) {
  Registry registry;
  {
    const Registry::Place first(&registry, "a");
    const Registry::Place second(&registry, "a");
    const Registry::Place other(&registry, "b");
    const Registry::Place nobody(&registry, "");
    EXPECT_EQ(registry.size(), 4);
    EXPECT_EQ(registry.SizeOf("a"), 2);
    EXPECT_EQ(registry.SizeOf("b"), 1);
    EXPECT_EQ(registry.SizeOf(""), 0);
  }
  EXPECT_EQ(registry.size(), 0);
  EXPECT_EQ(registry.SizeOf("a"), 0);
}

}  // namespace
}  // namespace plumbline::http_internal
