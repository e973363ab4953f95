// Every history of the lease protocol within small limits; and the same with a mistake in it, which
// must be found.
#include <cstdio>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/model/explorer.h"

namespace plumbline::server {
namespace {

constexpr int64_t kMaxStates = 200'000;

void Print(const char* what, const Exploration& result) {
  std::printf(
      "%s: %lld states, %lld transitions; with a task done %lld, a stale call refused "
      "%lld, the coordinator restarted %lld\n",
      what, static_cast<long long>(result.states), static_cast<long long>(result.transitions),
      static_cast<long long>(result.completed), static_cast<long long>(result.refused),
      static_cast<long long>(result.resumed));
}

ModelLimits Limits(int kills, int crashes, int expiries, int timeouts, int losses, int steps,
                   int events, int releases) {
  ModelLimits limits;
  limits.kills = kills;
  limits.crashes = crashes;
  limits.expiries = expiries;
  limits.timeouts = timeouts;
  limits.losses = losses;
  limits.steps = steps;
  limits.events = events;
  limits.releases = releases;
  return limits;
}

TEST(LeaseModelTest, NothingIsLostDoubledOrStaleInAnyHistory) {
  const struct {
    const char* name;
    ModelLimits limits;
  } cases[] = {
      {"a worker cut off, saving steps", Limits(0, 0, 1, 1, 0, 2, 0, 0)},
      {"cut off twice, reporting", Limits(0, 0, 2, 1, 0, 0, 1, 0)},
      {"a coordinator killed, answers lost", Limits(0, 1, 1, 0, 1, 1, 0, 0)},
      {"a coordinator killed twice", Limits(0, 2, 0, 0, 0, 0, 1, 0)},
      {"a worker killed, its calls still on their way", Limits(1, 0, 1, 0, 0, 1, 0, 0)},
      {"both killed", Limits(1, 1, 0, 0, 0, 1, 0, 0)},
      {"tasks handed back", Limits(0, 1, 0, 1, 0, 0, 0, 2)},
  };
  for (const auto& each : cases) {
    const absl::Time start = absl::Now();
    const Exploration result = Explore(each.limits, PlantedBug::kNone, kMaxStates);
    Print(each.name, result);
    std::printf("  in %.1f s\n", absl::ToDoubleSeconds(absl::Now() - start));
    std::fflush(stdout);
    EXPECT_EQ(result.violation, "") << absl::StrJoin(result.trace, "\n");
    EXPECT_TRUE(result.complete) << each.name;
    EXPECT_GT(result.completed, 0);
    EXPECT_TRUE(result.refused > 0 || each.limits.expiries == 0);
    EXPECT_TRUE(result.resumed > 0 || each.limits.crashes == 0);
  }
}

TEST(LeaseModelTest, FindsPlantedBugs) {
  const struct {
    PlantedBug bug;
    ModelLimits limits;
    const char* expected;
  } cases[] = {
      {PlantedBug::kUnfencedCommit, Limits(0, 0, 1, 0, 0, 1, 0, 0), "a stale commit step"},
      {PlantedBug::kTokensNotDurable, Limits(0, 1, 1, 0, 0, 0, 0, 0), "is granted after"},
      {PlantedBug::kAnswerBeforeSync, Limits(0, 1, 0, 0, 0, 0, 0, 0), "is given to two"},
      {PlantedBug::kCompleteUnderAnyToken, Limits(0, 0, 1, 0, 0, 0, 0, 0), "a stale complete"},
  };
  for (const auto& each : cases) {
    const Exploration result = Explore(each.limits, each.bug, kMaxStates);
    EXPECT_THAT(result.violation, testing::HasSubstr(each.expected));
    std::printf("%s after %lld states:\n  %s\n", result.violation.c_str(),
                static_cast<long long>(result.states), absl::StrJoin(result.trace, "\n  ").c_str());
    // Without the mistake the same histories are all right.
    EXPECT_EQ(Explore(each.limits, PlantedBug::kNone, kMaxStates).violation, "");
  }
}

}  // namespace
}  // namespace plumbline::server
