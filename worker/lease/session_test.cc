#include "worker/lease/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/clock_fake.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::worker {
namespace {

using Directive = v1::HeartbeatResponse::Directive;

class SessionTest : public testing::Test {
 protected:
  SessionOptions Options() {
    SessionOptions options;
    options.registration.set_worker_id("w");
    options.registration.set_incarnation("i");
    options.usage = [] {
      v1::DeviceUsage usage;
      usage.set_memory_bytes(5);
      return usage;
    };
    options.grace = absl::Seconds(20);
    return options;
  }

  std::shared_ptr<HeldTask> Acquire(Session* session) {
    auto task = session->Acquire();
    EXPECT_TRUE(task.ok()) << task.status();
    return task.ok() ? *task : nullptr;
  }

  // Lets the session's thread make `count` more heartbeats, an interval each.
  void Beat(int count) {
    const int before = static_cast<int>(coordinator_.heartbeats().size());
    for (int i = 1; i <= count; ++i) {
      ASSERT_TRUE(clock_.WaitForWaiters(1));
      clock_.Advance(absl::Seconds(3));
      ASSERT_TRUE(coordinator_.AwaitHeartbeats(before + i));
    }
  }

  // Moves the clock on in small steps until `task` is stopped.
  void AdvanceUntilStopped(HeldTask* task) {
    while (!task->work()->raised()) {
      ASSERT_TRUE(clock_.WaitForWaiters(1));
      clock_.Advance(absl::Seconds(1));
    }
  }

  FakeClock clock_;
  FakeCoordinator coordinator_;
};

TEST_F(SessionTest, RegistersAcquiresAndExtendsTheLease) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  EXPECT_EQ(session.worker_name(), "workers/w");
  EXPECT_EQ(task->fencing_token(), 7);
  v1::Progress progress;
  progress.set_done(3);
  task->SetProgress(progress);
  Beat(2);
  const v1::HeartbeatRequest heartbeat = coordinator_.heartbeats().back();
  ASSERT_EQ(heartbeat.held_size(), 1);
  EXPECT_EQ(heartbeat.held(0).fencing_token(), 7);
  EXPECT_EQ(heartbeat.held(0).progress().done(), 3);
  EXPECT_EQ(heartbeat.usage().memory_bytes(), 5);
  EXPECT_FALSE(task->work()->raised());
  session.Finish();
  Beat(2);
  EXPECT_EQ(coordinator_.heartbeats().back().held_size(), 0);
}

TEST_F(SessionTest, WaitsForACoordinatorThatIsAway) {
  coordinator_.SetAway(true);
  Session session(&coordinator_, &clock_, Options());
  ASSERT_TRUE(clock_.WaitForWaiters(1));
  EXPECT_EQ(session.registered().code(), absl::StatusCode::kUnavailable);
  coordinator_.SetAway(false);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(session.AwaitRegistration().ok());
  EXPECT_TRUE(session.registered().ok());
}

TEST_F(SessionTest, RefusalToRegisterIsAcquiresError) {
  coordinator_.RefuseRegistration(absl::InvalidArgumentError("labels: too many"));
  Session session(&coordinator_, &clock_, Options());
  EXPECT_EQ(session.Acquire().status().message(), "labels: too many");
  EXPECT_EQ(session.AwaitRegistration().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, RegistersAgainWhenToldAndKeepsItsTask) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(1));
  coordinator_.ForgetWorker();
  const size_t heartbeats = coordinator_.heartbeats().size();
  while (coordinator_.registrations() < 2) {
    ASSERT_TRUE(clock_.WaitForWaiters(1));
    clock_.Advance(absl::Seconds(1));
  }
  // One follows at once and tells of the task.
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(static_cast<int>(heartbeats) + 1));
  EXPECT_EQ(coordinator_.heartbeats().back().held_size(), 1);
  EXPECT_FALSE(task->work()->raised());
}

TEST_F(SessionTest, CancelStopsTheWorkAndLeavesTheWriting) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  coordinator_.SetDirective(Directive::ACTION_CANCEL);
  AdvanceUntilStopped(task.get());
  EXPECT_EQ(task->stop_reason(), StopReason::kCancelled);
  EXPECT_FALSE(task->writes()->raised());
}

TEST_F(SessionTest, LostLeaseStopsTheWorkAndTheWriting) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  coordinator_.LoseLease();
  AdvanceUntilStopped(task.get());
  EXPECT_EQ(task->stop_reason(), StopReason::kLeaseLost);
  EXPECT_TRUE(task->writes()->raised());
}

TEST_F(SessionTest, LeaseOutlivesACoordinatorThatIsAwayForAWhile) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(1));
  coordinator_.SetAway(true);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(clock_.WaitForWaiters(1));
    clock_.Advance(absl::Seconds(5));
  }
  EXPECT_FALSE(task->work()->raised());
  coordinator_.SetAway(false);
  Beat(2);
  EXPECT_EQ(coordinator_.heartbeats().back().held(0).fencing_token(), 7);
  EXPECT_FALSE(task->work()->raised());
}

TEST_F(SessionTest, DrainedWorkerKeepsItsTaskForTheGraceTime) {
  coordinator_.Assign(7);
  Session session(&coordinator_, &clock_, Options());
  const auto task = Acquire(&session);
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(1));
  ASSERT_TRUE(clock_.WaitForWaiters(1));
  session.Drain(absl::Seconds(20));
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(2));
  EXPECT_TRUE(coordinator_.heartbeats().back().draining());
  ASSERT_TRUE(clock_.WaitForWaiters(1));
  clock_.Advance(absl::Seconds(19));
  ASSERT_TRUE(coordinator_.AwaitHeartbeats(3));
  EXPECT_FALSE(task->work()->raised());

  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(task->work()->AwaitUntil(SystemClock(), absl::Now() + absl::Minutes(1)));
  EXPECT_EQ(task->stop_reason(), StopReason::kRelease);
  EXPECT_FALSE(task->writes()->raised());
  EXPECT_EQ(session.release_reason(), v1::RELEASE_REASON_PREEMPTED);

  // A coordinator that cannot be told does not keep the process.
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(task->writes()->AwaitUntil(SystemClock(), absl::Now() + absl::Minutes(1)));
  session.Finish();
  EXPECT_EQ(Acquire(&session), nullptr);
}

TEST_F(SessionTest, DrainEndsTheWaitForATask) {
  Session session(&coordinator_, &clock_, Options());
  std::shared_ptr<HeldTask> task;
  std::thread acquirer([&] { task = Acquire(&session); });
  EXPECT_TRUE(coordinator_.AwaitAcquiring());
  session.Drain(absl::Seconds(20));
  acquirer.join();
  EXPECT_EQ(task, nullptr);
}

TEST_F(SessionTest, OperatorsDrainReachesAWorkerThatWaits) {
  Session session(&coordinator_, &clock_, Options());
  ASSERT_TRUE(session.AwaitRegistration().ok());
  coordinator_.Drain();
  EXPECT_EQ(Acquire(&session), nullptr);
  EXPECT_EQ(session.release_reason(), v1::RELEASE_REASON_DRAINED);
}

TEST_F(SessionTest, SignsOffWithItsLastHeartbeat) {
  Session session(&coordinator_, &clock_, Options());
  ASSERT_TRUE(session.AwaitRegistration().ok());
  session.Drain(absl::ZeroDuration());
  session.SignOff();
  EXPECT_TRUE(coordinator_.heartbeats().back().signing_off());
}

}  // namespace
}  // namespace plumbline::worker
