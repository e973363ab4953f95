#include "server/scheduler/scheduler.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/scheduler_fixture.h"

namespace plumbline::server {
namespace {

using SchedulerTest = SchedulerFixture;

TEST_F(SchedulerTest, GivesTasksByPriorityThenAge) {
  AddJob(1, /*tasks=*/2);
  AddJob(2, 1, /*priority=*/5);
  AddJob(3, 1, /*priority=*/-5);
  // Other needs, so another class.
  AddJob(4, 1, /*priority=*/0, /*memory_bytes=*/kGigabyte);
  Register("one");
  std::vector<std::string> order;
  for (int i = 0; i < 5; ++i) order.push_back(Acquire("one").task());
  EXPECT_EQ(order,
            (std::vector<std::string>{"jobs/job2/tasks/0", "jobs/job1/tasks/0", "jobs/job1/tasks/1",
                                      "jobs/job4/tasks/0", "jobs/job3/tasks/0"}));
  EXPECT_EQ(Acquire("one").task(), "");
}

TEST_F(SchedulerTest, HeartbeatsKeepALeaseAndSilenceLosesIt) {
  AddJob(1);
  Register("one");
  const v1::Lease lease = Acquire("one");
  EXPECT_EQ(lease.remaining().seconds(), absl::ToInt64Seconds(options_.lease_duration));
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(options_.lease_duration * 0.9);
    scheduler_.Tick();
    EXPECT_EQ(Beat("one", {lease}).directives(0).action(),
              v1::HeartbeatResponse::Directive::ACTION_CONTINUE);
  }
  EXPECT_EQ(scheduler_.NextWake(), clock_.Now() + options_.lease_duration);
  clock_.Advance(options_.lease_duration);
  scheduler_.Tick();
  EXPECT_EQ(scheduler_.GetWorker("workers/one")->state(), v1::WORKER_STATE_LOST);
  EXPECT_EQ(Beat("one", {lease}).directives(0).action(),
            v1::HeartbeatResponse::Directive::ACTION_LEASE_LOST);
  EXPECT_EQ(scheduler_.GetWorker("workers/one")->state(), v1::WORKER_STATE_ACTIVE);
  const absl::Status late = scheduler_.Complete({1, 0}, lease.fencing_token(), v1::TaskReport());
  EXPECT_EQ(GetReason(late), kLeaseLostReason);
  const v1::Lease second = Acquire("one");
  EXPECT_GT(second.fencing_token(), lease.fencing_token());
  EXPECT_EQ(second.attempt(), 2);
  EXPECT_EQ(scheduler_.counts().leases_lost, 1);
}

TEST_F(SchedulerTest, AWorkerThatStartsAgainLosesItsLeasesAtOnce) {
  AddJob(1);
  Register("one", "i1");
  const v1::Lease lease = Acquire("one", "i1");
  // The same process, e.g. after a restart of the coordinator: nothing changes.
  Register("one", "i1");
  EXPECT_NE(scheduler_.FindHeld({1, 0}, lease.fencing_token()), nullptr);
  Register("one", "i2");
  EXPECT_EQ(scheduler_.FindHeld({1, 0}, lease.fencing_token()), nullptr);
  EXPECT_EQ(GetReason(scheduler_.HearFrom("workers/one", "i1")), kWorkerUnknownReason);
  EXPECT_EQ(Acquire("one", "i2").attempt(), 2);
}

TEST_F(SchedulerTest, APoisonTaskFailsAndNamesItsAttempts) {
  AddJob(1);
  Register("one");
  for (int attempt = 1; attempt <= options_.max_infrastructure_failures; ++attempt) {
    const v1::Lease lease = Acquire("one");
    ASSERT_EQ(lease.attempt(), attempt);
    ASSERT_TRUE(scheduler_.IsLive(1));
    scheduler_.TakeChanges();
    ASSERT_TRUE(Fail({1, 0}, lease.fencing_token(), v1::FAILURE_CLASS_INFRASTRUCTURE).ok());
    // The first retry comes at once, later ones after a while that grows.
    if (attempt == 1 || attempt == options_.max_infrastructure_failures) continue;
    EXPECT_EQ(Acquire("one").task(), "");
    EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_BACKOFF);
    clock_.Advance(options_.first_backoff * (1 << (attempt - 2)));
    scheduler_.Tick();
  }
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(1));
  const v1::JobEvent* const end = LastState(changes, /*of_job=*/true);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->job_state().state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(end->job_state().message(), "attempt 1 on workers/one: it broke"))
      << end->job_state().message();
  EXPECT_EQ(scheduler_.counts().tasks_poisoned, 1);
}

TEST_F(SchedulerTest, BadRequestsAndNumericalFailuresAreNotTriedAgain) {
  Register("one");
  int64_t job = 0;
  for (const v1::FailureClass failure :
       {v1::FAILURE_CLASS_BAD_REQUEST, v1::FAILURE_CLASS_NUMERICAL, v1::FAILURE_CLASS_PLUGIN}) {
    AddJob(++job, /*tasks=*/2);
    const v1::Lease lease = Acquire("one");
    ASSERT_TRUE(Fail({job, 0}, lease.fencing_token(), failure).ok());
    // The rest of the job goes on.
    const v1::Lease other = Acquire("one");
    ASSERT_EQ(other.task(), absl::StrCat("jobs/job", job, "/tasks/1"));
    ASSERT_TRUE(scheduler_.Complete({job, 1}, other.fencing_token(), v1::TaskReport()).ok());
    const WriteSet changes = scheduler_.TakeChanges();
    EXPECT_EQ(LastState(changes, true)->job_state().state(), v1::JOB_STATE_FAILED);
    EXPECT_FALSE(scheduler_.IsLive(job));
  }
}

TEST_F(SchedulerTest, SaysWhyEveryTaskWaits) {
  AddJob(1, 1, 0, /*memory_bytes=*/81 * kGigabyte);
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_NO_WORKER);
  scheduler_.TakeChanges();
  Register("small", "i1", 24 * kGigabyte);
  // Whoever watches learns of it.
  WriteSet changes = scheduler_.TakeChanges();
  ASSERT_NE(LastState(changes, false), nullptr);
  const v1::WaitingReason reason = LastState(changes, false)->task_state().waiting_reason();
  EXPECT_EQ(reason.code(), v1::WaitingReason::CODE_MEMORY);
  EXPECT_EQ(reason.message(), "needs 81.0 GB of device memory; the largest worker has 24.0 GB");
  EXPECT_EQ(Acquire("small").task(), "");
  Register("large", "i1", 96 * kGigabyte);
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_BUSY);
  EXPECT_EQ(Acquire("large").task(), "jobs/job1/tasks/0");

  AddJob(2, 1, 0, 90 * kGigabyte);
  EXPECT_EQ(Waiting(2).code(), v1::WaitingReason::CODE_BUSY);
  ASSERT_TRUE(scheduler_.Drain("workers/large").ok());
  EXPECT_EQ(Waiting(2).code(), v1::WaitingReason::CODE_MEMORY);

  v1::Job cuda;
  cuda.set_name("jobs/cuda");
  cuda.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
  cuda.mutable_spec()->mutable_placement()->set_device_kind(v1::DEVICE_KIND_CUDA);
  store::JobRecord record;
  *record.mutable_job() = cuda;
  scheduler_.AddJob(3, record, PlanTasks(cuda));
  EXPECT_EQ(Waiting(3).code(), v1::WaitingReason::CODE_NO_FIT);
  EXPECT_TRUE(absl::StrContains(Waiting(3).message(), "has a CPU, not a CUDA device"))
      << Waiting(3).message();
}

TEST_F(SchedulerTest, AWorkerThatFindsATaskTooLargeSaysHowMuchItNeeds) {
  AddJob(1);
  Register("one", "i1", 8 * kGigabyte);
  const v1::Lease lease = Acquire("one");
  v1::ReleaseTaskRequest release;
  release.set_task(lease.task());
  release.set_fencing_token(lease.fencing_token());
  release.set_reason(v1::RELEASE_REASON_UNSUITABLE);
  release.set_needed_memory_bytes(30 * kGigabyte);
  ASSERT_TRUE(scheduler_.Release(release, {1, 0}).ok());
  EXPECT_EQ(Acquire("one").task(), "");
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_MEMORY);
  Register("two", "i1", 20 * kGigabyte);
  EXPECT_EQ(Acquire("two").task(), "");
  Register("three", "i1", 40 * kGigabyte);
  EXPECT_EQ(Acquire("three").task(), "jobs/job1/tasks/0");

  // Without a figure, it waits for another worker.
  AddJob(2);
  const v1::Lease second = Acquire("two");
  release.set_task(second.task());
  release.set_fencing_token(second.fencing_token());
  release.clear_needed_memory_bytes();
  release.set_message("its disk is full");
  ASSERT_TRUE(scheduler_.Release(release, {2, 0}).ok());
  EXPECT_EQ(Acquire("two").task(), "");
  EXPECT_EQ(Acquire("three").task(), "jobs/job2/tasks/0");
}

TEST_F(SchedulerTest, DrainsAndSignsOff) {
  AddJob(1, /*tasks=*/2);
  Register("one");
  const v1::Lease lease = Acquire("one");
  EXPECT_EQ(scheduler_.Drain("workers/one")->state(), v1::WORKER_STATE_DRAINING);
  const v1::HeartbeatResponse told = Beat("one", {lease});
  EXPECT_TRUE(told.drain());
  EXPECT_EQ(told.directives(0).action(), v1::HeartbeatResponse::Directive::ACTION_RELEASE);
  EXPECT_TRUE(scheduler_.Acquire("workers/one", "i1")->drain());
  v1::HeartbeatRequest off;
  off.set_worker("workers/one");
  off.set_incarnation("i1");
  off.set_signing_off(true);
  ASSERT_TRUE(scheduler_.Heartbeat(off).ok());
  EXPECT_EQ(scheduler_.GetWorker("workers/one")->state(), v1::WORKER_STATE_GONE);
  Register("two");
  // What it still held is there at once, and being released is no failure of the task.
  EXPECT_EQ(Acquire("two").task(), "jobs/job1/tasks/0");
  EXPECT_EQ(scheduler_.counts().tasks_released, 1);
  // A draining worker that is lost drains when it is heard of again.
  ASSERT_TRUE(scheduler_.Drain("workers/two").ok());
  clock_.Advance(options_.lease_duration);
  scheduler_.Tick();
  EXPECT_EQ(scheduler_.GetWorker("workers/two")->state(), v1::WORKER_STATE_LOST);
  EXPECT_TRUE(Beat("two", {}).drain());
}

TEST_F(SchedulerTest, ForgetsWorkersThatAreLongGone) {
  Register("one");
  clock_.Advance(options_.lease_duration);
  scheduler_.Tick();
  clock_.Advance(options_.forget_workers_after / 2);
  Register("two");
  EXPECT_EQ(scheduler_.Workers().size(), 2u);
  clock_.Advance(options_.forget_workers_after / 2);
  Register("three");
  EXPECT_TRUE(absl::IsNotFound(scheduler_.GetWorker("workers/one").status()));
  EXPECT_TRUE(scheduler_.GetWorker("workers/two").ok());
}

TEST_F(SchedulerTest, CancelsWhatIsQueuedAtOnceAndWhatRunsWhenItsWorkerHasStopped) {
  AddJob(1, /*tasks=*/3);
  Register("one");
  const v1::Lease lease = Acquire("one");
  ASSERT_TRUE(scheduler_.Cancel(1, "enough").ok());
  EXPECT_EQ(Acquire("one").task(), "");
  EXPECT_EQ(Beat("one", {lease}).directives(0).action(),
            v1::HeartbeatResponse::Directive::ACTION_CANCEL);
  // Its worker dies instead of answering: the task does not run again.
  clock_.Advance(options_.lease_duration);
  scheduler_.Tick();
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_EQ(LastState(changes, true)->job_state().state(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(scheduler_.IsLive(1));
}

TEST_F(SchedulerTest, ASavedStepIsGettingOn) {
  AddJob(1);
  for (int attempt = 1; attempt <= 2 * options_.max_infrastructure_failures; ++attempt) {
    Register("one", absl::StrCat("i", attempt));
    const v1::Lease lease = Acquire("one", absl::StrCat("i", attempt));
    ASSERT_EQ(lease.attempt(), attempt);
    scheduler_.NoteSavedStep({1, 0}, lease.fencing_token(), attempt);
    ASSERT_TRUE(Fail({1, 0}, lease.fencing_token(), v1::FAILURE_CLASS_INFRASTRUCTURE).ok());
    ASSERT_TRUE(scheduler_.IsLive(1));
  }
}

TEST_F(SchedulerTest, CountsEachStepOfAnAttemptOnce) {
  AddJob(1);
  Register("one");
  const v1::Lease first = Acquire("one");
  v1::StepEvent step;
  step.set_origin(v1::STEP_ORIGIN_COMPUTED);
  for (int index : {0, 1, 1}) {
    step.set_step(index);
    scheduler_.NoteSavedStep({1, 0}, first.fencing_token(), index);
    scheduler_.CountStep({1, 0}, step);
  }
  // Saved, and the worker dies before it tells.
  scheduler_.NoteSavedStep({1, 0}, first.fencing_token(), 2);
  v1::SensitivityCheck check;
  check.set_input("text");
  scheduler_.NoteSensitivity({1, 0}, check);
  scheduler_.NoteSensitivity({1, 0}, check);
  Register("one", "i2");

  EXPECT_TRUE(scheduler_.HearFrom("workers/one", "i2").ok());
  const v1::Assignment second = scheduler_.Acquire("workers/one", "i2")->assignment();
  ASSERT_EQ(second.sensitivity_size(), 1);
  EXPECT_EQ(second.sensitivity(0).input(), "text");
  step.set_origin(v1::STEP_ORIGIN_REPLAYED);
  for (int index : {0, 1, 2}) {
    step.set_step(index);
    scheduler_.CountStep({1, 0}, step);
  }
  v1::TaskReport report;
  report.mutable_generation()->set_steps_computed(9);
  scheduler_.TakeChanges();
  ASSERT_TRUE(scheduler_.Complete({1, 0}, second.lease().fencing_token(), report).ok());
  const WriteSet changes = scheduler_.TakeChanges();
  const v1::JobEvent* completed = nullptr;
  for (const v1::JobEvent& event : changes.events()) {
    if (event.has_attempt_change()) completed = &event;
  }
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->attempt_change().steps_replayed(), 3);
  EXPECT_EQ(completed->attempt_change().steps_computed(), 0);
}

// Whatever workers, clock and callers do: one holder at a time, tokens that only grow, nothing
// accepted under a dead one, and every task finished exactly once in the end.
TEST_F(SchedulerTest, KeepsItsPromisesUnderRandomEvents) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  constexpr int kWorkers = 5;
  constexpr int kJobs = 20;
  struct Held {
    TaskKey key;
    v1::Lease lease;
  };
  std::vector<std::vector<Held>> held(kWorkers);
  std::vector<int> incarnations(kWorkers, 1);
  std::set<std::string> completed;
  std::map<std::string, int64_t> newest_token;
  const auto id = [](int worker) { return absl::StrCat("w", worker); };
  const auto incarnation = [&](int worker) { return absl::StrCat("i", incarnations[worker]); };
  for (int i = 0; i < kWorkers; ++i) Register(id(i), incarnation(i));
  for (int64_t job = 1; job <= kJobs; ++job) {
    AddJob(job, 1 + static_cast<int>(random() % 3), static_cast<int>(random() % 3));
  }
  int64_t newest = 0;
  int live = kJobs;
  for (int step = 0; step < 20000 && live > 0; ++step) {
    const int worker = static_cast<int>(random() % kWorkers);
    switch (random() % 8) {
      case 0:
      case 1: {
        const v1::Lease lease = Acquire(id(worker), incarnation(worker));
        if (lease.task().empty()) break;
        ASSERT_GT(lease.fencing_token(), newest);
        newest = lease.fencing_token();
        newest_token[lease.task()] = newest;
        int64_t job = 0;
        int32_t task = 0;
        ASSERT_EQ(std::sscanf(lease.task().c_str(), "jobs/job%ld/tasks/%d", &job, &task), 2);
        held[worker].push_back({{job, task}, lease});
        break;
      }
      case 2: {
        std::vector<v1::Lease> leases;
        for (const Held& each : held[worker]) leases.push_back(each.lease);
        Beat(id(worker), leases, incarnation(worker));
        break;
      }
      case 3:
      case 4: {
        if (held[worker].empty()) break;
        const Held each = held[worker].back();
        held[worker].pop_back();
        const absl::Status status =
            scheduler_.Complete(each.key, each.lease.fencing_token(), v1::TaskReport());
        if (!status.ok()) {
          ASSERT_EQ(GetReason(status), kLeaseLostReason);
          break;
        }
        ASSERT_EQ(newest_token[each.lease.task()], each.lease.fencing_token());
        ASSERT_TRUE(completed.insert(each.lease.task()).second) << "completed twice";
        break;
      }
      case 5:
        clock_.Advance(options_.lease_duration * (random() % 4) / 4);
        scheduler_.Tick();
        break;
      case 6:
        if (random() % 10 != 0) break;
        ++incarnations[worker];
        // What the dead process held it forgot; the tasks must come back by themselves.
        held[worker].clear();
        Register(id(worker), incarnation(worker));
        break;
      case 7: {
        // A partitioned worker writes late, under a token that may be dead.
        if (held[worker].empty()) break;
        const Held& each = held[worker].front();
        const bool is_newest = newest_token[each.lease.task()] == each.lease.fencing_token();
        const absl::StatusOr<int64_t> fresh =
            scheduler_.AcceptEvents(each.key, each.lease.fencing_token(), 1, 1, nullptr);
        if (fresh.ok()) {
          ASSERT_TRUE(is_newest);
        }
        break;
      }
    }
    const WriteSet changes = scheduler_.TakeChanges();
    live = 0;
    for (int64_t job = 1; job <= kJobs; ++job) live += scheduler_.IsLive(job) ? 1 : 0;
  }
  EXPECT_EQ(live, 0) << "not all jobs ended";
}

}  // namespace
}  // namespace plumbline::server
