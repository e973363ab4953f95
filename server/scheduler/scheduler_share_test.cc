// Who is next: fair share and quotas.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/scheduler/scheduler_fixture.h"

namespace plumbline::server {
namespace {

class ShareTest : public SchedulerFixture {
 protected:
  explicit ShareTest(SchedulerOptions options = {}) : SchedulerFixture(std::move(options)) {}

  void AddOf(const std::string& team, int64_t number, int tasks, int32_t priority = 0) {
    v1::Job job = NewJob(number, tasks);
    job.mutable_spec()->set_priority(priority);
    if (!team.empty()) (*job.mutable_spec()->mutable_labels())["team"] = team;
    Add(number, job);
  }

  // Runs one task for `duration` and says whose it was.
  int64_t RunOne(absl::Duration duration) {
    const v1::Lease lease = Acquire("one");
    if (lease.task().empty()) return 0;
    int64_t job = 0;
    int32_t task = 0;
    EXPECT_EQ(std::sscanf(lease.task().c_str(), "jobs/job%ld/tasks/%d", &job, &task), 2);
    clock_.Advance(duration);
    Beat("one", {lease});
    EXPECT_TRUE(scheduler_.Complete({job, task}, lease.fencing_token(), v1::TaskReport()).ok());
    scheduler_.TakeChanges();
    return job;
  }
};

TEST_F(ShareTest, ALongQueueOfOneTeamDoesNotHoldUpAnother) {
  Register("one");
  AddOf("red", 1, 100);
  EXPECT_EQ(RunOne(absl::Seconds(10)), 1);
  AddOf("blue", 2, 3);
  std::map<int64_t, int> ran;
  for (int i = 0; i < 6; ++i) ++ran[RunOne(absl::Seconds(10))];
  EXPECT_EQ(ran[1], 3);
  EXPECT_EQ(ran[2], 3);
}

TEST_F(ShareTest, SharesTimeNotTasks) {
  Register("one");
  AddOf("red", 1, 100);
  AddOf("blue", 2, 100);
  absl::Duration red, blue;
  for (int i = 0; i < 40; ++i) {
    // Red's tasks take four times as long.
    const v1::Lease lease = Acquire("one");
    const bool is_red = absl::StartsWith(lease.task(), "jobs/job1/");
    const absl::Duration took = absl::Seconds(is_red ? 4 : 1);
    clock_.Advance(took);
    Beat("one", {lease});
    (is_red ? red : blue) += took;
    int64_t job = 0;
    int32_t task = 0;
    ASSERT_EQ(std::sscanf(lease.task().c_str(), "jobs/job%ld/tasks/%d", &job, &task), 2);
    ASSERT_TRUE(scheduler_.Complete({job, task}, lease.fencing_token(), v1::TaskReport()).ok());
  }
  EXPECT_LE(absl::AbsDuration(red - blue), absl::Seconds(4));
}

TEST_F(ShareTest, SharesWhatRunsAtOnceAndIdlingSavesNothingUp) {
  AddOf("red", 1, 50);
  for (const char* const id : {"one", "two", "three", "four"}) Register(id);
  std::vector<v1::Lease> held;
  for (const char* const id : {"one", "two"}) held.push_back(Acquire(id));
  clock_.Advance(absl::Seconds(5));
  // Blue and those without a label come late: from here on the three are even.
  AddOf("blue", 2, 50);
  AddOf("", 3, 50);
  std::map<std::string, int> given;
  for (const char* const id : {"three", "four"}) {
    ++given[Acquire(id).task().substr(0, 9)];
  }
  EXPECT_EQ(given["jobs/job2"], 1);
  EXPECT_EQ(given["jobs/job3"], 1);
}

TEST_F(ShareTest, PriorityComesFirst) {
  Register("one");
  AddOf("red", 1, 2, /*priority=*/1);
  AddOf("blue", 2, 2);
  EXPECT_EQ(RunOne(absl::Seconds(10)), 1);
  EXPECT_EQ(RunOne(absl::Seconds(10)), 1);
  EXPECT_EQ(RunOne(absl::Seconds(10)), 2);
}

class QuotaTest : public ShareTest {
 protected:
  QuotaTest() : ShareTest(Options()) {}
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.quotas = {{"red", 1}, {FairShare::kEveryGroup, 2}};
    return options;
  }
};

TEST_F(QuotaTest, ATaskBeyondItsQuotaWaitsAndSaysSo) {
  for (const char* const id : {"one", "two", "three", "four"}) Register(id);
  AddOf("red", 1, 3);
  const v1::Lease lease = Acquire("one");
  EXPECT_EQ(lease.task(), "jobs/job1/tasks/0");
  EXPECT_EQ(Acquire("two").task(), "");
  v1::Job shown = NewJob(1, 0);
  for (int i = 0; i < 3; ++i) shown.add_tasks()->set_state(v1::JOB_STATE_QUEUED);
  scheduler_.AddPresentState(1, &shown);
  EXPECT_EQ(shown.tasks(1).waiting_reason().code(), v1::WaitingReason::CODE_QUOTA);
  EXPECT_EQ(shown.tasks(1).waiting_reason().message(),
            "jobs labelled team=red may run 1 tasks at once, and do");
  // Others have the quota of all others.
  AddOf("blue", 2, 3);
  EXPECT_EQ(Acquire("two").task(), "jobs/job2/tasks/0");
  EXPECT_EQ(Acquire("three").task(), "jobs/job2/tasks/1");
  EXPECT_EQ(Acquire("four").task(), "");
  ASSERT_TRUE(scheduler_.Complete({1, 0}, lease.fencing_token(), v1::TaskReport()).ok());
  EXPECT_EQ(Acquire("four").task(), "jobs/job1/tasks/1");
}

}  // namespace
}  // namespace plumbline::server
