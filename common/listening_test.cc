#include "common/listening.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/test_listener.h"

namespace plumbline {
namespace {

std::string Refusal(const std::string& address) {
  return std::string(CheckCanListen(address, "health").message());
}

TEST(ListeningTest, WhatIsNoAddressIsRefusedByItsField) {
  EXPECT_EQ(CheckCanListen("foo", "health").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal("foo"),
            "health: \"foo\" has no host and port; accepted: HOST:PORT or [IPV6]:PORT with a port "
            "from 0 to 65535");
  EXPECT_TRUE(absl::StrContains(Refusal("unix:"), "has no path"));
  EXPECT_TRUE(absl::StrContains(Refusal("unix:" + std::string(108, 'a')), "too long"));
}

TEST(ListeningTest, SaysWhatIsInTheWay) {
  auto listener = std::make_unique<TestListener>();
  const std::string taken = listener->address();
  EXPECT_EQ(Refusal(taken), "cannot listen on " + taken + ": another process listens there");
  EXPECT_EQ(CheckCanListen(taken, "health").code(), absl::StatusCode::kUnavailable);
  listener.reset();
  EXPECT_EQ(Refusal(taken), "");
  EXPECT_EQ(Refusal("127.0.0.1:0"), "");
  // An address for documentation, which no machine has.
  EXPECT_EQ(Refusal("192.0.2.1:0"),
            "cannot listen on 192.0.2.1:0: Cannot assign requested address");
  EXPECT_TRUE(absl::StartsWith(Refusal("no-such-host.invalid:0"),
                               "cannot listen on no-such-host.invalid:0: "));
}

TEST(ListeningTest, OfAllAddressesNoneMayBeTakenNorTwoBeOne) {
  auto listener = std::make_unique<TestListener>();
  const std::string taken = listener->address();
  const auto refusal = [](const std::string& listen, const std::string& http) {
    return std::string(CheckCanListenOnAll({{"listen", listen}, {"http", http}}).message());
  };
  EXPECT_EQ(refusal("127.0.0.1:0", taken),
            "cannot listen on " + taken + ": another process listens there");
  listener.reset();
  EXPECT_EQ(refusal("127.0.0.1:0", taken), "");
  EXPECT_EQ(refusal("127.0.0.1:0", "127.0.0.1:0"), "");
  EXPECT_EQ(refusal(taken, taken), "http: \"" + taken +
                                       "\" is another address of this process; accepted: a port "
                                       "of its own");
  // They are let go.
  EXPECT_EQ(refusal("127.0.0.1:0", taken), "");
  const std::string path = absl::StrCat("/tmp/listening_test.all.", getpid());
  EXPECT_EQ(refusal("unix:" + path, taken), "");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(refusal("unix:" + path + "/none", taken),
            "cannot listen on unix:" + path + "/none: No such file or directory");
}

TEST(ListeningTest, APathIsFreeUnlessSomebodyListensThere) {
  // Not below TEST_TMPDIR, which may be too long for a socket.
  const std::string path = absl::StrCat("/tmp/listening_test.", getpid());
  EXPECT_EQ(Refusal("unix:" + path), "");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(absl::EndsWith(Refusal("unix:" + path + "/none"), ": No such file or directory"));
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  // As one that a process left behind.
  EXPECT_EQ(Refusal("unix:" + path), "");
  ASSERT_EQ(listen(listener, 1), 0);
  EXPECT_TRUE(absl::EndsWith(Refusal("unix:" + path), "another process listens there"));
  close(listener);
  unlink(path.c_str());
  EXPECT_TRUE(absl::EndsWith(Refusal("unix:/tmp"), "there is a file that is no socket"));
}

}  // namespace
}  // namespace plumbline
