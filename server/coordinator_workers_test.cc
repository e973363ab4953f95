// Workers and the server itself, through gRPC and HTTP.
#include <httplib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

class WorkersTest : public CoordinatorTest {
 protected:
  httplib::Client Http() const { return httplib::Client("http://" + coordinator_->http_address()); }
};

TEST_F(WorkersTest, WaitForATaskWithoutPolling) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  absl::StatusOr<v1::AcquireTaskResponse> answer;
  std::thread waiting([&] { answer = Acquire("one", "i1", 60); });
  const std::string job = Create(Replay({"tiny"}))->name();
  waiting.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->assignment().lease().task(), job + "/tasks/0");
  EXPECT_FALSE(Acquire("one", "i1")->has_assignment());
}

TEST_F(WorkersTest, ManyWaitAtOnce) {
  Start();
  constexpr int kWorkers = 300;
  struct Poll {
    grpc::ClientContext context;
    v1::AcquireTaskRequest request;
    v1::AcquireTaskResponse response;
  };
  std::vector<std::unique_ptr<Poll>> polls;
  absl::BlockingCounter answered(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    ASSERT_TRUE(Register(absl::StrCat("w", i), "i1").ok());
    Poll& poll = *polls.emplace_back(std::make_unique<Poll>());
    SetDeadline(&poll.context);
    poll.request.set_worker(absl::StrCat("workers/w", i));
    poll.request.set_incarnation("i1");
    poll.request.mutable_wait()->set_seconds(60);
    workers_->async()->AcquireTask(&poll.context, &poll.request, &poll.response,
                                   [&answered](grpc::Status status) {
                                     EXPECT_TRUE(status.ok()) << status.error_message();
                                     answered.DecrementCount();
                                   });
  }
  ASSERT_TRUE(Create(ReplayOfMany(kWorkers)).ok());
  answered.Wait();
  std::set<std::string> tasks;
  for (const auto& poll : polls) tasks.insert(poll->response.assignment().lease().task());
  EXPECT_EQ(tasks.size(), static_cast<size_t>(kWorkers));
}

TEST_F(WorkersTest, WhoseCallerLeftGivesTheTaskToAnother) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  ASSERT_TRUE(Register("two", "i1").ok());
  {
    grpc::ClientContext context;
    v1::AcquireTaskRequest request;
    request.set_worker("workers/one");
    request.set_incarnation("i1");
    request.mutable_wait()->set_seconds(60);
    v1::AcquireTaskResponse response;
    std::thread leaver([&] { context.TryCancel(); });
    workers_->AcquireTask(&context, request, &response);
    leaver.join();
  }
  const std::string job = Create(Replay({"tiny"}))->name();
  EXPECT_EQ(Acquire("two", "i1", 60)->assignment().lease().task(), job + "/tasks/0");
}

TEST_F(WorkersTest, ThatAreUnknownAreToldToRegister) {
  Start();
  const absl::Status status = Acquire("one", "i1").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(GetReason(status), kWorkerUnknownReason);
  ASSERT_TRUE(Register("one", "i1").ok());
  EXPECT_TRUE(Acquire("one", "i1").ok());
  EXPECT_EQ(GetReason(Acquire("one", "i2").status()), kWorkerUnknownReason);
  EXPECT_TRUE(absl::IsInvalidArgument(Register("No Such Id!", "i1")));
}

TEST_F(WorkersTest, ThatDrainTakeNothingMore) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  absl::StatusOr<v1::AcquireTaskResponse> answer;
  std::thread waiting([&] { answer = Acquire("one", "i1", 60); });
  v1::DrainWorkerRequest drain;
  drain.set_name("workers/one");
  EXPECT_EQ(Call(admin_.get(), &v1::AdminService::Stub::DrainWorker, drain)->state(),
            v1::WORKER_STATE_DRAINING);
  waiting.join();
  EXPECT_TRUE(answer->drain());
  const std::string job = Create(Replay({"tiny"}))->name();
  EXPECT_TRUE(Acquire("one", "i1")->drain());
  Restart();
  EXPECT_TRUE(Acquire("one", "i1")->drain());
  ASSERT_TRUE(Register("one", "i2").ok());
  EXPECT_TRUE(Acquire("one", "i2")->has_assignment());
  drain.set_name("workers/none");
  EXPECT_TRUE(
      absl::IsNotFound(Call(admin_.get(), &v1::AdminService::Stub::DrainWorker, drain).status()));
}

TEST_F(WorkersTest, LoseTheirTaskWhenTheyAreSilent) {
  options_.clock = &fake_clock_;
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  ASSERT_TRUE(Register("two", "i1").ok());
  const std::string job = Create(Replay({"tiny"}))->name();
  const v1::Lease first = Acquire("one", "i1")->assignment().lease();
  absl::StatusOr<v1::AcquireTaskResponse> answer;
  std::thread waiting([&] { answer = Acquire("two", "i1", 60); });
  fake_clock_.Advance(options_.scheduler.lease_duration / 2);
  v1::HeartbeatRequest beat;
  beat.set_worker("workers/two");
  beat.set_incarnation("i1");
  ASSERT_TRUE(Call(workers_.get(), &v1::WorkerService::Stub::Heartbeat, beat).ok());
  fake_clock_.Advance(options_.scheduler.lease_duration / 2);
  // It may have asked before or after the lease was lost.
  waiting.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->assignment().lease().task(), first.task());
  EXPECT_EQ(GetReason(Complete(first, Passed())), kLeaseLostReason);
  EXPECT_EQ(GetReason(PutArtifact(first, "x", Sha256Hex("x")).status()), kLeaseLostReason);
  ASSERT_TRUE(Complete(answer->assignment().lease(), Passed()).ok());
  EXPECT_EQ(Get(job)->tasks(0).attempts(0).end(), v1::ATTEMPT_END_LEASE_EXPIRED);
}

TEST_F(WorkersTest, AreTooSmallForALayoutAndTheTaskSaysSo) {
  Start();
  ASSERT_TRUE(Register("one", "i1", /*memory_bytes=*/int64_t{4} << 30).ok());
  v1::CreateJobRequest request = Replay({"released"});
  request.mutable_spec()->set_checkpoint("synthetic:released");
  const v1::Job job = Create(request).value();
  EXPECT_EQ(job.waiting_reason().code(), v1::WaitingReason::CODE_MEMORY);
  EXPECT_TRUE(absl::StrContains(job.waiting_reason().message(), "4.3 GB"))
      << job.waiting_reason().message();
  EXPECT_FALSE(Acquire("one", "i1")->has_assignment());
}

TEST_F(WorkersTest, EveryChangeIsInTheAuditLog) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  const std::string job = Create(Replay({"tiny"}))->name();
  v1::CancelJobRequest cancel;
  cancel.set_name(job);
  ASSERT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::CancelJob, cancel).ok());
  const v1::ListAuditEventsResponse audit =
      Call(admin_.get(), &v1::AdminService::Stub::ListAuditEvents, v1::ListAuditEventsRequest())
          .value();
  ASSERT_EQ(audit.events_size(), 3);
  EXPECT_EQ(audit.events(0).method(), "plumbline.v1.JobService/CancelJob");
  EXPECT_EQ(audit.events(0).resource(), job);
  EXPECT_EQ(audit.events(2).method(), "plumbline.v1.WorkerService/RegisterWorker");
}

TEST_F(WorkersTest, TheServerSaysHowItIs) {
  Start();
  ASSERT_TRUE(Create(Replay({"tiny"})).ok());
  httplib::Client http = Http();
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  EXPECT_EQ(http.Get("/readyz")->status, 200);
  const std::string metrics = http.Get("/metrics")->body;
  EXPECT_TRUE(absl::StrContains(metrics, "plumbline_queue_depth_tasks{waits_for=\"worker\"} 1"))
      << metrics;
  EXPECT_TRUE(absl::StrContains(metrics, "plumbline_store_healthy 1")) << metrics;
  EXPECT_TRUE(absl::StrContains(
      metrics, "plumbline_rpcs_total{code=\"OK\",method=\"JobService/CreateJob\"} 1"))
      << metrics;
}

TEST_F(WorkersTest, TheServerAnswersHealthChecks) {
  options_.health = "127.0.0.1:0";
  Start();
  const auto probe =
      grpc::CreateChannel(coordinator_->health_address(), grpc::InsecureChannelCredentials());
  for (const std::string service : {"", "liveness", "readiness"}) {
    for (grpc::Channel* const channel : {channel_.get(), probe.get()}) {
      const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
      while (HealthOf(channel, service) != "SERVING" && SystemClock()->Now() < deadline) {
        absl::SleepFor(absl::Milliseconds(1));
      }
      EXPECT_EQ(HealthOf(channel, service), "SERVING") << service;
    }
  }
  // It serves nothing else.
  const auto jobs = v1::JobService::NewStub(probe);
  const absl::Status refused =
      Call(jobs.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
}

TEST_F(WorkersTest, TheServerListensOnASocketAndOnLoopbackOnly) {
  // The test's own folder may have too long a name for a socket.
  const std::string socket = absl::StrCat("/tmp/plumbline-test-", getpid(), ".sock");
  options_.listen = {"unix:" + socket};
  options_.http = "";
  Start();
  EXPECT_TRUE(Create(Replay({"tiny"})).ok());
  CoordinatorOptions second = options_;
  EXPECT_EQ(GetReason(Coordinator::Start(second).status()), "STORE_IN_USE");
  for (const char* const address : {"0.0.0.0:0", "192.0.2.1:7433", "[::]:0", "example.com:1"}) {
    CoordinatorOptions open = options_;
    open.data_dir += ".open";
    open.listen = {address};
    const absl::Status status = Coordinator::Start(open).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1")) << status;
    EXPECT_FALSE(std::filesystem::exists(open.data_dir));
  }
  coordinator_.reset();
  EXPECT_FALSE(std::filesystem::exists(socket));
}

}  // namespace
}  // namespace plumbline::server
