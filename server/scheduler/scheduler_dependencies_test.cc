// Tasks that wait for other jobs.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "server/scheduler/scheduler_fixture.h"

namespace plumbline::server {
namespace {

class DependenciesTest : public SchedulerFixture {
 protected:
  static store::Dependency WaitFor(int64_t job, store::Dependency::Use use, int32_t task = 0) {
    store::Dependency dependency;
    dependency.set_use(use);
    dependency.set_job(absl::StrCat("jobs/job", job));
    dependency.set_job_number(job);
    dependency.set_task(task);
    return dependency;
  }

  void AddGate(int64_t number) {
    v1::Job gate;
    gate.set_name(absl::StrCat("jobs/job", number));
    gate.set_kind(v1::JOB_KIND_FULL_MODEL);
    gate.set_state(v1::JOB_STATE_QUEUED);
    for (const char* const layout : {"tiny", "small"}) {
      gate.mutable_spec()->mutable_full_model()->add_layouts()->set_name(layout);
    }
    Add(number, gate);
  }

  void AddGeneration(int64_t number, const std::vector<store::Dependency>& waits_for) {
    v1::Job job;
    job.set_name(absl::StrCat("jobs/job", number));
    job.set_kind(v1::JOB_KIND_GENERATION);
    job.set_state(v1::JOB_STATE_QUEUED);
    job.mutable_spec()->mutable_generation()->add_seeds(42);
    Add(number, job, waits_for);
  }

  static v1::TaskReport Report(v1::Outcome outcome, const std::string& kernel = "k") {
    v1::TaskReport report;
    report.mutable_verdict()->set_outcome(outcome);
    report.mutable_verdict()->set_sentence("what was found");
    report.mutable_identity()->set_sha256(std::string(64, 'a'));
    v1::IdentityPart& part = *report.mutable_identity()->add_parts();
    part.set_name("kernel");
    part.set_value(kernel);
    return report;
  }

  // Acquires the task of a job and completes it.
  void Run(int64_t job, int32_t task, const v1::TaskReport& report) {
    const v1::Lease lease = Acquire("one");
    ASSERT_EQ(lease.task(), absl::StrCat("jobs/job", job, "/tasks/", task));
    ASSERT_TRUE(scheduler_.Complete({job, task}, lease.fencing_token(), report).ok());
  }
};

TEST_F(DependenciesTest, AGenerationWaitsForItsGateAndIsGivenWhatItCertified) {
  Register("one");
  AddGate(1);
  AddGeneration(2, {WaitFor(1, store::Dependency::USE_GATE)});
  EXPECT_EQ(Waiting(2).code(), v1::WaitingReason::CODE_DEPENDENCY);
  EXPECT_EQ(Waiting(2).message(), "waits for jobs/job1, the gate");
  EXPECT_EQ(scheduler_.Load().blocked, 1);
  Run(1, 0, Report(v1::OUTCOME_PASSED));
  // Half of the gate is none.
  EXPECT_EQ(Waiting(2).code(), v1::WaitingReason::CODE_DEPENDENCY);
  scheduler_.TakeChanges();
  Run(1, 1, Report(v1::OUTCOME_PASSED));
  // The gate's end and the task's readiness become durable together.
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(1));
  EXPECT_EQ(LastState(changes, true)->job(), "jobs/job1");
  EXPECT_EQ(LastState(changes, false)->job(), "jobs/job2");
  EXPECT_EQ(LastState(changes, false)->task_state().waiting_reason().code(),
            v1::WaitingReason::CODE_BUSY);
  const v1::Assignment assignment = AcquireTask("one");
  EXPECT_EQ(assignment.lease().task(), "jobs/job2/tasks/0");
  EXPECT_EQ(assignment.gate_identity().parts(0).value(), "k");
}

TEST_F(DependenciesTest, AGateThatDidNotPassEndsWhoWaitsForItAndWhoWaitsForThose) {
  const struct {
    v1::TaskReport first, second;
    const char* reason;
  } cases[] = {
      {Report(v1::OUTCOME_PASSED), Report(v1::OUTCOME_FAILED), "GATE_NOT_PASSED"},
      {Report(v1::OUTCOME_PASSED), v1::TaskReport(), "GATE_NOT_PASSED"},
      {Report(v1::OUTCOME_PASSED), Report(v1::OUTCOME_PASSED, "other"), "IDENTITY_DIFFERS"},
  };
  Register("one");
  int64_t gate = 1;
  for (const auto& each : cases) {
    AddGate(gate);
    AddGeneration(gate + 1, {WaitFor(gate, store::Dependency::USE_GATE)});
    AddGeneration(gate + 2, {WaitFor(gate + 1, store::Dependency::USE_AGAINST)});
    Run(gate, 0, each.first);
    Run(gate, 1, each.second);
    const WriteSet changes = scheduler_.TakeChanges();
    std::vector<std::string> failed;
    for (const v1::JobEvent& event : changes.events()) {
      if (event.job_state().state() == v1::JOB_STATE_FAILED) failed.push_back(event.job());
    }
    EXPECT_EQ(failed, (std::vector<std::string>{absl::StrCat("jobs/job", gate + 1),
                                                absl::StrCat("jobs/job", gate + 2)}));
    EXPECT_FALSE(scheduler_.IsLive(gate + 1));
    EXPECT_FALSE(scheduler_.IsLive(gate + 2));
    gate += 3;
  }
  EXPECT_EQ(scheduler_.live_tasks(), 0);
}

TEST_F(DependenciesTest, ACancelledGateEndsWhoWaitsForIt) {
  AddGate(1);
  AddGeneration(2, {WaitFor(1, store::Dependency::USE_GATE)});
  ASSERT_TRUE(scheduler_.Cancel(1, "enough").ok());
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(2));
  EXPECT_TRUE(absl::StrContains(LastState(changes, true)->job_state().message(),
                                "jobs/job1 has not run to its end"));
}

TEST_F(DependenciesTest, WhoWaitsCanBeCancelledAndIsThenLeftAlone) {
  Register("one");
  AddGate(1);
  AddGeneration(2, {WaitFor(1, store::Dependency::USE_GATE)});
  ASSERT_TRUE(scheduler_.Cancel(2, "enough").ok());
  scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(2));
  Run(1, 0, Report(v1::OUTCOME_PASSED));
  Run(1, 1, Report(v1::OUTCOME_PASSED));
  EXPECT_EQ(Acquire("one").task(), "");
}

TEST_F(DependenciesTest, AComparisonWaitsForBothSides) {
  Register("one");
  AddJob(1);
  AddJob(2);
  AddJob(3);
  v1::Job comparison = NewJob(4);
  Add(4, comparison,
      {WaitFor(1, store::Dependency::USE_INPUT), WaitFor(3, store::Dependency::USE_INPUT)});
  EXPECT_EQ(Waiting(4).message(), "waits for jobs/job1, an input and jobs/job3, an input");
  Run(1, 0, v1::TaskReport());
  scheduler_.TakeChanges();
  EXPECT_EQ(Waiting(4).message(), "waits for jobs/job3, an input");
  Run(2, 0, v1::TaskReport());
  const v1::Lease third = Acquire("one");
  EXPECT_EQ(third.task(), "jobs/job3/tasks/0");
  EXPECT_EQ(Acquire("one").task(), "");
  ASSERT_TRUE(scheduler_.Complete({3, 0}, third.fencing_token(), v1::TaskReport()).ok());
  EXPECT_EQ(Acquire("one").task(), "jobs/job4/tasks/0");
}

TEST_F(DependenciesTest, ASeedComparesWithTheRunOfItsOwnAsSoonAsThatIsThere) {
  Register("one");
  AddGeneration(1, {});
  AddGeneration(2, {WaitFor(1, store::Dependency::USE_AGAINST)});
  const v1::Lease lease = Acquire("one");
  ASSERT_TRUE(scheduler_.NoteRun({1, 0}, lease.fencing_token(), "runs/r").ok());
  ASSERT_TRUE(
      scheduler_.Complete({1, 0}, lease.fencing_token(), Report(v1::OUTCOME_NOT_JUDGED)).ok());
  // A job that is added before that became durable waits for nothing.
  AddGeneration(3, {WaitFor(1, store::Dependency::USE_AGAINST)});
  scheduler_.TakeChanges();
  for (const char* const task : {"jobs/job2/tasks/0", "jobs/job3/tasks/0"}) {
    const v1::Assignment assignment = AcquireTask("one");
    EXPECT_EQ(assignment.lease().task(), task);
    EXPECT_EQ(assignment.against_run(), "runs/r");
  }
}

TEST_F(DependenciesTest, GoesOnWaitingAfterARestart) {
  Register("one");
  AddGate(1);
  AddGeneration(2, {WaitFor(1, store::Dependency::USE_GATE)});
  AddGeneration(4, {WaitFor(3, store::Dependency::USE_GATE)});  // Job 3 never was.
  scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(4));

  Scheduler restarted(&clock_, options_);
  for (const int64_t number : {1, 2}) {
    v1::Job job;
    job.set_name(absl::StrCat("jobs/job", number));
    job.set_state(v1::JOB_STATE_QUEUED);
    job.set_kind(number == 1 ? v1::JOB_KIND_FULL_MODEL : v1::JOB_KIND_GENERATION);
    store::JobRecord record;
    *record.mutable_job() = job;
    std::vector<store::TaskRecord> tasks(1);
    tasks[0].mutable_task()->set_name(absl::StrCat(job.name(), "/tasks/0"));
    tasks[0].mutable_task()->set_kind(job.kind());
    tasks[0].mutable_task()->set_state(v1::JOB_STATE_QUEUED);
    if (number == 2) *tasks[0].add_waits_for() = WaitFor(1, store::Dependency::USE_GATE);
    restarted.RestoreJob(number, record, tasks);
  }
  restarted.EndRestore();
  v1::RegisterWorkerRequest request;
  request.set_worker_id("one");
  request.set_incarnation("i1");
  request.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  restarted.Register(request);
  const v1::Lease lease = restarted.Acquire("workers/one", "i1")->assignment().lease();
  EXPECT_EQ(lease.task(), "jobs/job1/tasks/0");
  EXPECT_FALSE(restarted.Acquire("workers/one", "i1")->has_assignment());
  ASSERT_TRUE(restarted.Complete({1, 0}, lease.fencing_token(), Report(v1::OUTCOME_PASSED)).ok());
  EXPECT_EQ(restarted.Acquire("workers/one", "i1")->assignment().gate_identity().sha256(),
            std::string(64, 'a'));
}

// A generation of two seeds whose quality is measured, as job 1.
class QualityTest : public DependenciesTest {
 protected:
  QualityTest() {
    Register("one");
    v1::Job job;
    job.set_name("jobs/job1");
    job.set_kind(v1::JOB_KIND_GENERATION);
    job.set_state(v1::JOB_STATE_QUEUED);
    v1::GenerationSpec& generation = *job.mutable_spec()->mutable_generation();
    generation.mutable_contract()->set_num_frames(22);
    generation.add_seeds(42);
    generation.add_seeds(43);
    generation.set_against("jobs/other");
    generation.add_spread("jobs/third");
    std::vector<store::TaskRecord> tasks = PlanTasks(job);
    for (store::TaskRecord& task : PlanQuality(job, 1, tasks)) tasks.push_back(task);
    store::JobRecord record;
    *record.mutable_job() = job;
    scheduler_.AddJob(1, record, std::move(tasks));
  }
};

TEST_F(QualityTest, EachSeedIsComparedOnceItIsGenerated) {
  const v1::Lease first = Acquire("one");
  ASSERT_EQ(first.task(), "jobs/job1/tasks/0");
  EXPECT_EQ(scheduler_.Load().blocked, 2);
  ASSERT_TRUE(scheduler_.Complete({1, 0}, first.fencing_token(), Report(v1::OUTCOME_PASSED)).ok());
  EXPECT_EQ(scheduler_.Load().blocked, 1);
  Run(1, 1, Report(v1::OUTCOME_PASSED));
  const v1::Assignment quality = AcquireTask("one");
  EXPECT_EQ(quality.lease().task(), "jobs/job1/tasks/2");
  EXPECT_EQ(quality.title(), "quality of seed 42");
  const v1::ComparisonSpec::GenerationPair& pair = quality.spec().comparison().generations();
  EXPECT_EQ(pair.a(), "jobs/job1");
  EXPECT_EQ(pair.b(), "jobs/other");
  ASSERT_EQ(pair.spread_size(), 1);
  ASSERT_EQ(pair.seeds_size(), 1);
  EXPECT_EQ(pair.seeds(0), 42u);
  ASSERT_TRUE(
      scheduler_.Complete({1, 2}, quality.lease().fencing_token(), Report(v1::OUTCOME_FAILED))
          .ok());
  Run(1, 3, Report(v1::OUTCOME_PASSED));
  const WriteSet set = scheduler_.TakeChanges();
  EXPECT_EQ(LastState(set, true)->job_state().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(LastState(set, true)->job_state().verdict().outcome(), v1::OUTCOME_FAILED);
}

TEST_F(QualityTest, WhatWasNotGeneratedIsNotCompared) {
  const v1::Lease first = Acquire("one");
  ASSERT_TRUE(Fail({1, 0}, first.fencing_token(), v1::FAILURE_CLASS_NUMERICAL).ok());
  Run(1, 1, Report(v1::OUTCOME_PASSED));
  Run(1, 3, Report(v1::OUTCOME_PASSED));
  const WriteSet set = scheduler_.TakeChanges();
  const v1::JobEvent& last = *LastState(set, true);
  EXPECT_EQ(last.job_state().state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(last.job_state().message(), "it broke");
}

TEST_F(QualityTest, ACancelledGenerationCancelsItsComparison) {
  ASSERT_TRUE(scheduler_.Cancel(1, "enough").ok());
  const WriteSet set = scheduler_.TakeChanges();
  EXPECT_EQ(LastState(set, true)->job_state().state(), v1::JOB_STATE_CANCELLED);
}

TEST(PlanQualityTest, NothingIsComparedThatIsNotDecoded) {
  v1::Job job;
  v1::GenerationSpec& generation = *job.mutable_spec()->mutable_generation();
  generation.add_seeds(42);
  generation.set_against("jobs/other");
  generation.mutable_contract()->set_num_frames(22);
  EXPECT_EQ(PlanQuality(job, 1, PlanTasks(job)).size(), 1u);
  // Two latent frames make no clip.
  generation.mutable_contract()->set_num_frames(5);
  EXPECT_EQ(PlanQuality(job, 1, PlanTasks(job)).size(), 0u);
  generation.mutable_contract()->set_num_frames(22);
  generation.set_latents_only(true);
  EXPECT_EQ(PlanQuality(job, 1, PlanTasks(job)).size(), 0u);
  generation.set_latents_only(false);
  generation.clear_against();
  EXPECT_EQ(PlanQuality(job, 1, PlanTasks(job)).size(), 0u);
}

}  // namespace
}  // namespace plumbline::server
