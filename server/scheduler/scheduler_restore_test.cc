// The scheduler of a coordinator that comes back.
#include <vector>

#include "gtest/gtest.h"
#include "server/proto_util.h"
#include "server/scheduler/scheduler_fixture.h"

namespace plumbline::server {
namespace {

using RestoreTest = SchedulerFixture;

TEST_F(RestoreTest, KnowsWhatTheStoreHolds) {
  // Two tasks, one running under a lease, as a store would hold them.
  v1::Job job;
  job.set_name("jobs/job7");
  job.set_state(v1::JOB_STATE_RUNNING);
  for (int i = 0; i < 2; ++i) {
    job.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
  }
  std::vector<store::TaskRecord> tasks = PlanTasks(job);
  tasks[0].mutable_task()->set_state(v1::JOB_STATE_RUNNING);
  v1::Attempt& attempt = *tasks[0].mutable_task()->add_attempts();
  attempt.set_number(1);
  attempt.set_fencing_token(41);
  store::JobRecord record;
  *record.mutable_job() = job;
  store::LeaseRecord lease;
  lease.set_fencing_token(41);
  lease.set_worker("workers/one");
  lease.set_incarnation("i1");
  lease.set_attempt(1);
  store::WorkerRecord worker;
  worker.mutable_worker()->set_name("workers/one");
  worker.mutable_worker()->set_incarnation("i1");
  worker.mutable_worker()->set_state(v1::WORKER_STATE_ACTIVE);
  scheduler_.RestoreFencingToken(41);
  scheduler_.RestoreWorker(worker);
  scheduler_.RestoreJob(7, record, tasks);
  scheduler_.RestoreLease({7, 0}, lease, 5, 9);
  EXPECT_EQ(scheduler_.NextWake(), clock_.Now() + options_.lease_duration);
  v1::Lease held;
  held.set_task("jobs/job7/tasks/0");
  held.set_fencing_token(41);
  EXPECT_EQ(Beat("one", {held}).directives(0).action(),
            v1::HeartbeatResponse::Directive::ACTION_CONTINUE);
  EXPECT_EQ(Acquire("one").fencing_token(), 42);
}

TEST_F(RestoreTest, WaitsNoLongerForAClockThatWasAhead) {
  store::JobRecord record;
  *record.mutable_job() = NewJob(1);
  std::vector<store::TaskRecord> tasks = PlanTasks(record.job());
  *tasks[0].mutable_not_before() = ToTimestamp(clock_.Now() + absl::Hours(48));
  *tasks[0].mutable_task()->mutable_create_time() = ToTimestamp(clock_.Now() + absl::Hours(48));
  scheduler_.RestoreJob(1, record, tasks);
  scheduler_.EndRestore();
  Register("one");
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_BACKOFF);
  clock_.Advance(options_.longest_backoff);
  scheduler_.Tick();
  EXPECT_EQ(scheduler_.Load().oldest_queued, clock_.Now() - options_.longest_backoff);
  EXPECT_EQ(Acquire("one").task(), "jobs/job1/tasks/0");
}

TEST_F(RestoreTest, AfterABackupWasRestoredNobodyHoldsWhatWasHeld) {
  Register("one");
  AddJob(1, /*tasks=*/2);
  const v1::Lease held = Acquire("one");
  scheduler_.TakeChanges();
  for (int i = 0; i < 2 * options_.max_infrastructure_failures; ++i) {
    scheduler_.LoseAllLeases("restored");
    const WriteSet changes = scheduler_.TakeChanges();
    ASSERT_EQ(changes.lease_changes().size(), 1u);
    EXPECT_EQ(changes.lease_changes()[0].token, 0);
    EXPECT_EQ(Beat("one", {held}).directives(0).action(),
              v1::HeartbeatResponse::Directive::ACTION_LEASE_LOST);
    // The task is not to blame, and waits for nobody.
    const v1::Lease again = Acquire("one");
    EXPECT_EQ(again.task(), held.task());
    EXPECT_GT(again.fencing_token(), held.fencing_token());
    scheduler_.TakeChanges();
  }
}

}  // namespace
}  // namespace plumbline::server
