#include "common/output_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/files.h"

namespace plumbline {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class OutputPathTest : public testing::Test {
 protected:
  OutputPathTest() { fs::create_directories(folder_); }
  ~OutputPathTest() override { fs::remove_all(folder_); }

  static std::string Refusal(const std::string& path) {
    return std::string(CheckOutputPath("--out", path).message());
  }

  const std::string folder_ = testing::TempDir() + "/output_path";
};

TEST_F(OutputPathTest, ATrialLeavesEverythingAsItWas) {
  EXPECT_EQ(Refusal(folder_ + "/new"), "");
  EXPECT_TRUE(fs::is_empty(folder_));
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/old", "old").ok());
  EXPECT_EQ(Refusal(folder_ + "/old"), "");
  EXPECT_EQ(*ReadFile(folder_ + "/old", 100), "old");
}

TEST_F(OutputPathTest, WhatCannotBeWrittenIsRefusedByItsFlag) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "").ok());
  EXPECT_EQ(Refusal(folder_),
            "--out: " + folder_ + " is there and is no regular file; accepted: a file's path");
  EXPECT_EQ(Refusal("/dev/null"),
            "--out: /dev/null is there and is no regular file; accepted: a file's path");
  for (const std::string& path :
       {folder_ + "/none/file", folder_ + "/file/file", std::string("/proc/file"),
        folder_ + "/" + std::string(300, 'a')}) {
    EXPECT_THAT(Refusal(path), StartsWith("--out: " + path + ": cannot create: ")) << path;
    EXPECT_THAT(Refusal(path), EndsWith("; accepted: a file in a folder that is there")) << path;
  }
}

}  // namespace
}  // namespace plumbline
