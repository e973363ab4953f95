#include "common/host_and_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace plumbline {
namespace {

TEST(HostAndPortTest, NamesAndAddresses) {
  for (const auto& [address, host, port] :
       {std::tuple<const char*, const char*, int>{"localhost:7433", "localhost", 7433},
        {"10.0.0.1:1", "10.0.0.1", 1},
        {"[::1]:65535", "::1", 65535}}) {
    const absl::StatusOr<HostAndPort> parsed =
        ParseHostAndPort(address, 1, "--server", "HOST:PORT");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, port);
  }
}

TEST(HostAndPortTest, WhatIsNoneIsRefusedWithTheFieldAndWhatIsAccepted) {
  for (const char* address :
       {"", ":", "::::", ":7433", "nohost", "host:", "host:99999", "host:0", "host:-1", "host:+1",
        "host:7433x", "::1:7433", "[::1:7433", "host: 1", "host:184467440737095516161"}) {
    const absl::Status refused = ParseHostAndPort(address, 1, "--server", "HOST:PORT").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(refused.message()),
                testing::AllOf(testing::HasSubstr("--server"), testing::HasSubstr("HOST:PORT")));
  }
  EXPECT_TRUE(ParseHostAndPort("host:0", 0, "--listen", "HOST:PORT").ok());
}

TEST(HostAndPortTest, OnlyAddressesAndLocalhostAreThisMachines) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "127.example.com", "127.1", "128.0.0.1", "::2", "localhost.example",
                           "0.0.0.0", "head"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
  for (const char* address : {"localhost:1", "127.0.0.1:7433", "[::1]:7433", "unix:/run/a"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  }
  for (const char* address : {"127.example.com:1", "head:7433", "[::2]:1", "0.0.0.0:7433"}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  }
}

}  // namespace
}  // namespace plumbline
