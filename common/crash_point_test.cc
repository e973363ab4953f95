#include "common/crash_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace plumbline {
namespace {

// In a process of its own, since a process reads its environment once.
void Pass(const char* armed, int times) {
  setenv(kCrashPointVariable, armed, 1);
  for (int i = 0; i < times; ++i) CrashPoint(CrashPlace::kWorkerBeforePut);
  _exit(0);
}

class CrashPointDeathTest : public testing::Test {
 protected:
  CrashPointDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CrashPointDeathTest, ArmedPointEndsTheProcess) {
  EXPECT_EXIT(Pass("worker.before_put", 1), testing::ExitedWithCode(kCrashPointExitStatus), "");
}

TEST_F(CrashPointDeathTest, CountSaysAtWhichPass) {
  EXPECT_EXIT(Pass("worker.before_put:3", 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("worker.before_put:3", 3), testing::ExitedWithCode(kCrashPointExitStatus), "");
}

TEST_F(CrashPointDeathTest, OtherPointsAreNotArmed) {
  EXPECT_EXIT(Pass("worker.during_put", 9), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("", 9), testing::ExitedWithCode(0), "");
}

// tests/e2e/crash_points_test.py goes by the document.
TEST(CrashPlacesTest, AreThoseOfTheDocument) {
  std::ifstream file("docs/crash_points.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex pattern("`((store|worker)\\.[a-z_]+)`");
  std::set<std::string> documented;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    documented.insert((*match)[1]);
  }
  std::set<std::string> places;
  for (const char* const program : {"store", "worker"}) {
    for (const std::string& name : CrashPlacesOf(program)) places.insert(name);
  }
  EXPECT_THAT(documented, testing::ElementsAreArray(places));
}

}  // namespace
}  // namespace plumbline
