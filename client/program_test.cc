#include "client/program.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;

TEST(RunProgram, ArgumentsArriveAsTheyAre) {
  const auto result = RunProgram({"printf", "[%s]", "a b", "$HOME;`id`", "new\nline", "", "\"'"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->out, "[a b][$HOME;`id`][new\nline][][\"']");
}

TEST(RunProgram, BothOutputsAndTheStatusAreKept) {
  const auto result = RunProgram(
      {"sh", "-c",
       "cat; head -c 300000 /dev/zero | tr '\\0' x; head -c 200000 /dev/zero >&2; exit 7"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_status, 7);
  EXPECT_EQ(result->out, std::string(300000, 'x'));
  EXPECT_EQ(result->error.size(), 200000u);
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -KILL $$"})->exit_status, 137);
}

TEST(RunProgram, WhatIsWrongIsSaid) {
  const absl::Status missing = RunProgram({"plumbline-no-such-program"}).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("plumbline-no-such-program"));
  const absl::Status endless = RunProgram({"cat", "/dev/zero"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(endless)) << endless;
}

}  // namespace
}  // namespace plumbline::client
