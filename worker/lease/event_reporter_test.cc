#include "worker/lease/event_reporter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/clock_fake.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::worker {
namespace {

v1::JobEvent LogLine(const std::string& text) {
  v1::JobEvent event;
  event.mutable_log()->set_severity(v1::LogEvent::SEVERITY_INFO);
  event.mutable_log()->set_message(text);
  return event;
}

v1::JobEvent ProgressTo(int64_t done) {
  v1::JobEvent event;
  event.mutable_progress()->set_done(done);
  return event;
}

// An assignment that the fake coordinator has handed out under token 7.
v1::Assignment Acquire(FakeCoordinator* coordinator) {
  v1::RegisterWorkerRequest registration;
  registration.set_worker_id("w");
  registration.set_incarnation("i");
  EXPECT_TRUE(coordinator->RegisterWorker(registration, {}).ok());
  coordinator->Assign(7);
  v1::AcquireTaskRequest request;
  request.set_incarnation("i");
  return coordinator->AcquireTask(request, {})->assignment();
}

// Moves a fake clock on whenever somebody waits for it, until it is destroyed.
class ClockDriver {
 public:
  explicit ClockDriver(FakeClock* clock)
      : thread_([this, clock] {
          while (!done_.HasBeenNotified()) {
            clock->Advance(absl::Milliseconds(500));
            done_.WaitForNotificationWithTimeout(absl::Microseconds(200));
          }
        }) {}
  ~ClockDriver() {
    done_.Notify();
    thread_.join();
  }

 private:
  absl::Notification done_;
  std::thread thread_;
};

class EventReporterTest : public testing::Test {
 protected:
  FakeClock clock_;
  FakeCoordinator coordinator_;
  HeldTask task_{Acquire(&coordinator_)};
};

TEST_F(EventReporterTest, EventsArriveInOrderWithTheTimeTheyWereReportedAt) {
  EventReporter reporter(&coordinator_, &task_, &clock_);
  const absl::Time start = clock_.Now();
  ASSERT_TRUE(reporter.Report(LogLine("a")).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(reporter.Report(LogLine("b")).ok());
  ASSERT_TRUE(reporter.Flush().ok());
  EXPECT_EQ(*reporter.Flush(), 2);
  const std::vector<v1::JobEvent> events = coordinator_.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].log().message(), "a");
  EXPECT_EQ(events[0].time().seconds(), absl::ToUnixSeconds(start));
  EXPECT_EQ(events[1].log().message(), "b");
  EXPECT_EQ(events[1].time().seconds(), absl::ToUnixSeconds(start) + 1);
}

TEST_F(EventReporterTest, FlushWithoutEventsNamesNone) {
  EventReporter reporter(&coordinator_, &task_, &clock_);
  EXPECT_EQ(*reporter.Flush(), 0);
}

TEST_F(EventReporterTest, BrokenStreamsLoseNothingAndRepeatNothing) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::mt19937 fault_random(seed + 1);
  coordinator_.SetStreamFaults([&fault_random] {
    FakeCoordinator::StreamFault fault;
    switch (fault_random() % 4) {
      case 0:
        fault.messages_that_arrive = static_cast<int>(fault_random() % 3);
        break;
      case 1:
        fault.answer_arrives = false;
        break;
      default:
        break;
    }
    return fault;
  });
  const ClockDriver driver(&clock_);
  EventReporterOptions options;
  options.max_events = 16;
  options.max_events_per_stream = 5;
  options.backoff_seed = seed;
  EventReporter reporter(&coordinator_, &task_, &clock_, options);
  constexpr int kEvents = 600;
  for (int i = 0; i < kEvents; ++i) {
    // Some of half a megabyte, so that streams of several messages come about.
    const size_t padding = random() % 20 == 0 ? size_t{500'000} : random() % 100;
    ASSERT_TRUE(reporter.Report(LogLine(absl::StrCat(i, " ", std::string(padding, 'x')))).ok());
    if (random() % 50 == 0) {
      ASSERT_TRUE(reporter.Flush().ok());
    }
  }
  EXPECT_EQ(*reporter.Flush(), kEvents);
  const std::vector<v1::JobEvent> events = coordinator_.events();
  ASSERT_EQ(events.size(), static_cast<size_t>(kEvents));
  for (int i = 0; i < kEvents; ++i) {
    const std::string& message = events[static_cast<size_t>(i)].log().message();
    ASSERT_EQ(message.substr(0, message.find(' ')), absl::StrCat(i));
  }
}

TEST_F(EventReporterTest, FullQueueHoldsTheJobUntilTheCoordinatorIsBack) {
  coordinator_.SetAway(true);
  EventReporterOptions options;
  options.max_events = 3;
  EventReporter reporter(&coordinator_, &task_, &clock_, options);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reporter.Report(LogLine(absl::StrCat(i))).ok());
  absl::Notification reported;
  std::thread job([&] {
    EXPECT_TRUE(reporter.Report(LogLine("3")).ok());
    reported.Notify();
  });
  ASSERT_TRUE(clock_.WaitForWaiters(1));  // The sender, before it tries again.
  EXPECT_FALSE(reported.HasBeenNotified());
  coordinator_.SetAway(false);
  clock_.Advance(absl::Minutes(1));
  job.join();
  EXPECT_EQ(*reporter.Flush(), 4);
  EXPECT_EQ(coordinator_.events().size(), 4u);
}

TEST_F(EventReporterTest, StopOfTheTaskEndsTheWaitForRoomButNotTheFlush) {
  coordinator_.SetAway(true);
  EventReporterOptions options;
  options.max_events = 1;
  EventReporter reporter(&coordinator_, &task_, &clock_, options);
  ASSERT_TRUE(reporter.Report(LogLine("0")).ok());
  absl::Status status;
  std::thread job([&] { status = reporter.Report(LogLine("1")); });
  task_.Stop(StopReason::kCancelled);
  job.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(clock_.WaitForWaiters(1));
  coordinator_.SetAway(false);
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(*reporter.Flush(), 1);
}

TEST_F(EventReporterTest, UnsentProgressIsReplacedByNewer) {
  coordinator_.SetAway(true);
  EventReporter reporter(&coordinator_, &task_, &clock_);
  ASSERT_TRUE(reporter.Report(LogLine("sent")).ok());
  ASSERT_TRUE(clock_.WaitForWaiters(1));
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(reporter.Report(ProgressTo(i)).ok());
  EXPECT_EQ(task_.progress()->done(), 100);
  coordinator_.SetAway(false);
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(*reporter.Flush(), 2);
  EXPECT_EQ(coordinator_.events().back().progress().done(), 100);
}

TEST_F(EventReporterTest, LostLeaseStopsTheTask) {
  EventReporter reporter(&coordinator_, &task_, &clock_);
  coordinator_.LoseLease();
  ASSERT_TRUE(reporter.Report(LogLine("a")).ok());
  EXPECT_FALSE(reporter.Flush().ok());
  EXPECT_EQ(task_.stop_reason(), StopReason::kLeaseLost);
  EXPECT_TRUE(coordinator_.events().empty());
}

TEST_F(EventReporterTest, EventThatNoMessageCanHoldIsRefused) {
  EventReporter reporter(&coordinator_, &task_, &clock_);
  EXPECT_EQ(reporter.Report(LogLine(std::string(2 << 20, 'x'))).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(*reporter.Flush(), 0);
}

}  // namespace
}  // namespace plumbline::worker
