#include "client/embedded/state_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;

std::string TempFolder() {
  std::string path = testing::TempDir() + "state.XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

TEST(StateFolderTest, OneHolderOfTheLockAtATime) {
  const std::string path = TempFolder();
  auto first = StateFolder::Open(path);
  auto second = StateFolder::Open(path);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_TRUE(*(*first)->TryLock());
  EXPECT_TRUE(*(*first)->TryLock());
  EXPECT_FALSE(*(*second)->TryLock());
  first->reset();
  EXPECT_TRUE(*(*second)->TryLock());
}

TEST(StateFolderTest, MakesAFolderThatOthersCannotEnter) {
  const std::string path = TempFolder() + "/new/folder";
  ASSERT_TRUE(StateFolder::Open(path).ok());
  struct stat info = {};
  ASSERT_EQ(stat((path + "/embedded").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(chmod((path + "/embedded").c_str(), 0755), 0);
  const auto opened = StateFolder::Open(path);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(opened.status().message(), HasSubstr("mode 755"));
}

TEST(StateFolderTest, WhereNoneCanBeMadeItSaysHowToNameAnother) {
  const std::string message(StateFolder::Open("/proc/plumbline").status().message());
  EXPECT_NE(message.find("PLUMBLINE_STATE_DIR"), std::string::npos) << message;
}

TEST(StateFolderTest, RefusesALinkInItsPlace) {
  const std::string path = TempFolder();
  ASSERT_EQ(symlink("/tmp", (path + "/embedded").c_str()), 0);
  EXPECT_FALSE(StateFolder::Open(path).ok());
}

TEST(StateFolderTest, ALongPathStillGivesASocketAddress) {
  const std::string path = TempFolder() + "/" + std::string(150, 'x');
  const auto folder = StateFolder::Open(path);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string address = (*folder)->socket_address();
  absl::string_view socket = address;
  ASSERT_TRUE(absl::ConsumePrefix(&socket, "unix:"));
  EXPECT_LE(socket.size(), 107u);
  // It is the folder that the path leads to.
  const std::string probe = std::string(absl::StripSuffix(socket, "/socket")) + "/lock";
  EXPECT_EQ(access(probe.c_str(), F_OK), 0);
}

TEST(StatePathTest, TheEnvironmentDecidesInOrder) {
  setenv("PLUMBLINE_STATE_DIR", "/a", 1);
  setenv("XDG_STATE_HOME", "/b", 1);
  setenv("HOME", "/c", 1);
  EXPECT_EQ(*StatePathFromEnvironment(), "/a");
  unsetenv("PLUMBLINE_STATE_DIR");
  EXPECT_EQ(*StatePathFromEnvironment(), "/b/plumbline");
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(*StatePathFromEnvironment(), "/c/.local/state/plumbline");
  unsetenv("HOME");
  EXPECT_EQ(StatePathFromEnvironment().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace plumbline::client
