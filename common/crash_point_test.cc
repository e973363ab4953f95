#include "common/crash_point.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace plumbline {
namespace {

// In a process of its own, since a process reads its environment once.
void Pass(const char* armed, int times) {
  setenv(kCrashPointVariable, armed, 1);
  for (int i = 0; i < times; ++i) CrashPoint("worker.here");
  _exit(0);
}

class CrashPointDeathTest : public testing::Test {
 protected:
  CrashPointDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CrashPointDeathTest, ArmedPointEndsTheProcess) {
  EXPECT_EXIT(Pass("worker.here", 1), testing::ExitedWithCode(kCrashPointExitStatus), "");
}

TEST_F(CrashPointDeathTest, CountSaysAtWhichPass) {
  EXPECT_EXIT(Pass("worker.here:3", 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("worker.here:3", 3), testing::ExitedWithCode(kCrashPointExitStatus), "");
}

TEST_F(CrashPointDeathTest, OtherPointsAreNotArmed) {
  EXPECT_EXIT(Pass("worker.there", 9), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("", 9), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plumbline
