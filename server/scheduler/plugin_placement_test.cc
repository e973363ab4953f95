// Tasks that need plug-ins: where they go, what is said where no worker has them, and how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/scheduler/placement.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/scheduler_fixture.h"

namespace plumbline::server {
namespace {

using ::testing::HasSubstr;

class PluginPlacementTest : public SchedulerFixture {
 protected:
  void AddPluginJob(int64_t number, const std::string& composition, bool uploaded = false) {
    v1::Job job = NewJob(number);
    job.mutable_spec()->set_composition(composition);
    if (uploaded) job.mutable_spec()->add_plugins()->set_artifact("artifacts/a");
    Add(number, job);
  }

  void RegisterWith(const std::string& id, const std::vector<std::string>& plugins,
                    bool takes_uploads = false, const std::string& refused = "") {
    v1::RegisterWorkerRequest request;
    request.set_worker_id(id);
    request.set_incarnation("i1");
    v1::WorkerCapabilities& capabilities = *request.mutable_capabilities();
    capabilities.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    capabilities.mutable_device()->set_memory_bytes(16 * kGigabyte);
    capabilities.set_takes_uploaded_plugins(takes_uploads);
    for (const std::string& name : plugins) capabilities.add_plugins()->set_name(name);
    if (!refused.empty()) {
      v1::Plugin& plugin = *capabilities.add_plugins();
      plugin.set_name(refused);
      plugin.set_refused("crashes while it is loaded");
    }
    scheduler_.Register(request);
  }
};

TEST_F(PluginPlacementTest, GoesToAWorkerThatHasThem) {
  AddPluginJob(1, "candidate+plugin/a:swiglu+plugin/b:attention,o_proj");
  RegisterWith("one", {"a"});
  RegisterWith("two", {"b", "a"});
  EXPECT_EQ(Acquire("one").task(), "");
  EXPECT_EQ(Acquire("two").task(), "jobs/job1/tasks/0");
}

TEST_F(PluginPlacementTest, OneThatAJobBringsGoesToAWorkerThatLoadsIt) {
  AddPluginJob(1, "candidate+plugin/a:swiglu", /*uploaded=*/true);
  RegisterWith("one", {"a"});
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_PLUGIN);
  EXPECT_THAT(Waiting(1).message(), HasSubstr("no worker loads uploaded ones"));
  EXPECT_EQ(Acquire("one").task(), "");
  RegisterWith("two", {}, /*takes_uploads=*/true);
  EXPECT_EQ(Acquire("two").task(), "jobs/job1/tasks/0");
}

TEST_F(PluginPlacementTest, SaysWhichOneNobodyHas) {
  AddPluginJob(1, "candidate+plugin/none:swiglu");
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_NO_WORKER);
  RegisterWith("one", {"b", "a"});
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_PLUGIN);
  EXPECT_EQ(Waiting(1).message(), "no worker has the plug-in none; they have: a, b");
  RegisterWith("two", {}, false, "none");
  EXPECT_EQ(
      Waiting(1).message(),
      "no worker has the plug-in none; workers/two refuses it: it crashes while it is loaded");
}

TEST_F(PluginPlacementTest, AnotherWantComesFirst) {
  v1::Job job = NewJob(1);
  job.mutable_spec()->set_composition("candidate+plugin/none:swiglu");
  job.mutable_spec()->mutable_placement()->set_device_kind(v1::DEVICE_KIND_CUDA);
  Add(1, job);
  RegisterWith("one", {});
  EXPECT_EQ(Waiting(1).code(), v1::WaitingReason::CODE_NO_FIT);
}

TEST_F(PluginPlacementTest, FailsAfterAWhileThatNobodyHasIt) {
  AddPluginJob(1, "candidate+plugin/none:swiglu");
  AddJob(2);
  RegisterWith("one", {});
  EXPECT_EQ(scheduler_.NextWake(), clock_.Now() + options_.lease_duration);
  const absl::Time begun = clock_.Now();
  while (clock_.Now() < begun + options_.plugin_patience - options_.lease_duration) {
    clock_.Advance(options_.lease_duration / 2);
    EXPECT_TRUE(scheduler_.HearFrom("workers/one", "i1").ok());
    scheduler_.Tick();
  }
  EXPECT_TRUE(scheduler_.IsLive(1));
  scheduler_.TakeChanges();
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(options_.lease_duration / 2);
    EXPECT_TRUE(scheduler_.HearFrom("workers/one", "i1").ok());
    scheduler_.Tick();
  }
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(1));
  EXPECT_TRUE(scheduler_.IsLive(2));
  const v1::JobEvent* const end = LastState(changes, /*of_job=*/true);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->job_state().state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(end->job_state().message(), HasSubstr("no worker has the plug-in none"));
}

TEST_F(PluginPlacementTest, AWorkerThatComesInTimeStopsTheClock) {
  AddPluginJob(1, "candidate+plugin/late:swiglu");
  RegisterWith("one", {});
  clock_.Advance(options_.plugin_patience / 2);
  scheduler_.Tick();
  RegisterWith("two", {"late"});
  clock_.Advance(options_.plugin_patience);
  EXPECT_TRUE(scheduler_.HearFrom("workers/two", "i1").ok());
  scheduler_.Tick();
  EXPECT_TRUE(scheduler_.IsLive(1));
  EXPECT_EQ(Acquire("two").task(), "jobs/job1/tasks/0");
}

TEST_F(PluginPlacementTest, IsTriedLessOftenSinceThePluginMayBeWhy) {
  AddPluginJob(1, "candidate+plugin/a:swiglu");
  RegisterWith("one", {"a"});
  for (int attempt = 1; attempt <= options_.max_plugin_failures; ++attempt) {
    clock_.Advance(options_.longest_backoff);
    scheduler_.Tick();
    EXPECT_TRUE(scheduler_.HearFrom("workers/one", "i1").ok());
    const v1::Lease lease = Acquire("one");
    ASSERT_EQ(lease.attempt(), attempt);
    scheduler_.TakeChanges();
    ASSERT_TRUE(Fail({1, 0}, lease.fencing_token(), v1::FAILURE_CLASS_INFRASTRUCTURE).ok());
  }
  const WriteSet changes = scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(1));
  EXPECT_THAT(LastState(changes, /*of_job=*/true)->job_state().message(),
              HasSubstr("under candidate+plugin/a:swiglu, whose plug-in may be why"));
  EXPECT_LT(options_.max_plugin_failures, options_.max_infrastructure_failures);
}

TEST_F(PluginPlacementTest, AFaultOfAPluginIsNotTriedAgain) {
  AddPluginJob(1, "candidate+plugin/a:swiglu");
  RegisterWith("one", {"a"});
  const v1::Lease lease = Acquire("one");
  ASSERT_TRUE(Fail({1, 0}, lease.fencing_token(), v1::FAILURE_CLASS_PLUGIN).ok());
  scheduler_.TakeChanges();
  EXPECT_FALSE(scheduler_.IsLive(1));
}

}  // namespace
}  // namespace plumbline::server
