#include "client/token_commands.h"

#include <cstdio>
#include <filesystem>
#include <string>

#include "common/access/access_file.h"
#include "common/access/token.h"
#include "common/clock_fake.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::Not;

class TokenCommandsTest : public testing::Test {
 protected:
  TokenCommandsTest() : path_(testing::TempDir() + "/access.json") {
    std::filesystem::remove(path_);
    environment_.clock = &clock_;
  }

  // What a command printed; its error in `status_`.
  template <typename Command>
  std::string Run(absl::StatusOr<ExitStatus> (*run)(const Command&, const Environment&),
                  const Command& command) {
    environment_.output.out = std::tmpfile();
    environment_.output.error = std::tmpfile();
    status_ = run(command, environment_).status();
    error_ = Contents(environment_.output.error);
    return Contents(environment_.output.out);
  }

  static std::string Contents(std::FILE* file) {
    std::string text(static_cast<size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
    return text;
  }

  CreateToken Create(const std::string& name, const std::string& role) const {
    CreateToken command;
    command.file = path_;
    command.name = name;
    command.role = role;
    return command;
  }

  const std::string path_;
  FakeClock clock_;
  Environment environment_;
  absl::Status status_;
  std::string error_;
};

TEST_F(TokenCommandsTest, OnlyATokenOnATerminalIsSaidToStandBeneath) {
  Run(&DoCreateToken, Create("file", "viewer"));
  EXPECT_EQ(error_, "");
  environment_.output.out_is_terminal = true;
  Run(&DoCreateToken, Create("terminal", "viewer"));
  EXPECT_EQ(error_, "the token is shown this once:\n");
}

TEST_F(TokenCommandsTest, ErrorsNameTheFlag) {
  Run(&DoCreateToken, Create("a b", "viewer"));
  ASSERT_EQ(GetFieldViolations(status_).size(), 1u);
  EXPECT_EQ(GetFieldViolations(status_)[0].field, "--name");
  EXPECT_EQ(status_.message().substr(0, 14), "--name: \"a b\" ");
}

TEST_F(TokenCommandsTest, ATokenIsPrintedOnceListedWithoutItsSecretAndRevoked) {
  const std::string printed = Run(&DoCreateToken, Create("ci", "submitter"));
  ASSERT_TRUE(status_.ok()) << status_;
  ASSERT_EQ(printed.back(), '\n');
  const std::string token = printed.substr(0, printed.size() - 1);
  const TokenParts parts = ParseToken(token).value();
  const AccessFile file = LoadAccessFile(path_).value();
  ASSERT_EQ(file.entries.size(), 1u);
  EXPECT_EQ(file.entries[0].sha256, HashTokenSecret(file.entries[0].salt, parts.secret));
  CreateToken node = Create("node", "worker");
  node.certificate = "node-1";
  node.expires = "1h";
  EXPECT_EQ(Run(&DoCreateToken, node), "");
  ASSERT_TRUE(status_.ok()) << status_;

  ListTokens list;
  list.file = path_;
  std::string table = Run(&DoListTokens, list);
  EXPECT_THAT(table, HasSubstr("ci"));
  EXPECT_THAT(table, HasSubstr("submitter"));
  EXPECT_THAT(table, HasSubstr("CN=node-1"));
  EXPECT_THAT(table, HasSubstr("good until"));
  EXPECT_THAT(table, Not(HasSubstr(std::string(parts.secret))));
  clock_.Advance(absl::Hours(2));
  EXPECT_THAT(Run(&DoListTokens, list), HasSubstr("expired"));

  RevokeToken revoke;
  revoke.file = path_;
  revoke.name = "ci";
  Run(&DoRevokeToken, revoke);
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(Run(&DoListTokens, list), HasSubstr("revoked"));
  Run(&DoRevokeToken, revoke);
  EXPECT_TRUE(absl::IsNotFound(status_));
}

TEST_F(TokenCommandsTest, WhatIsWrongIsNamedAndChangesNothing) {
  Run(&DoCreateToken, Create("ci", "root"));
  EXPECT_THAT(status_.message(), HasSubstr("viewer, submitter, worker, admin"));
  Run(&DoCreateToken, Create("a b", "admin"));
  EXPECT_THAT(status_.message(), HasSubstr("name"));
  CreateToken command = Create("ci", "admin");
  command.expires = "tomorrow";
  Run(&DoCreateToken, command);
  EXPECT_THAT(status_.message(), HasSubstr("--expires"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  ListTokens list;
  list.file = path_;
  Run(&DoListTokens, list);
  EXPECT_TRUE(absl::IsNotFound(status_));
}

}  // namespace
}  // namespace plumbline::client
