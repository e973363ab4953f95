// Old jobs and events go, and nothing else does.
#include <filesystem>
#include <string>
#include <vector>

#include "common/status.h"
#include "gtest/gtest.h"
#include "server/store/store_check.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

class RetentionTest : public CoordinatorTest {
 protected:
  RetentionTest() {
    options_.clock = &fake_clock_;
    options_.retention.interval = absl::Minutes(1);
  }

  // The name of a job that has run.
  std::string RunJob() {
    EXPECT_TRUE(Register("one", "i1").ok());
    const absl::StatusOr<v1::Job> job = Create(Replay({"tiny"}));
    const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
    EXPECT_TRUE(Report(lease, 1, 5).ok());
    EXPECT_TRUE(Complete(lease, Passed(), 5).ok());
    return job->name();
  }

  // Until retention has run once more: it sleeps with the clock, as the scheduler does.
  void Await(const std::function<bool()>& condition) {
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    while (!condition() && SystemClock()->Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
    EXPECT_TRUE(condition());
  }
};

TEST_F(RetentionTest, DeletesJobsThatEndedLongAgo) {
  options_.retention.keep_jobs = absl::Hours(2);
  Start();
  const std::string old = RunJob();
  const absl::StatusOr<v1::Job> live = Create(Replay({"tiny"}));
  fake_clock_.Advance(absl::Hours(1));
  const std::string young = RunJob();
  fake_clock_.Advance(absl::Hours(1) + absl::Minutes(2));
  Await([&] { return absl::IsNotFound(Get(old).status()); });
  EXPECT_TRUE(Get(young).ok());
  EXPECT_TRUE(Get(live->name()).ok());
  coordinator_.reset();
  EXPECT_EQ(StoreCheck::Run(options_.data_dir)->problem_count, 0);
}

TEST_F(RetentionTest, DropsOldEventsAndKeepsHowAJobEnded) {
  options_.retention.keep_events = absl::Hours(2);
  Start();
  const std::string old = RunJob();
  const int64_t newest = Get(old)->last_sequence();
  fake_clock_.Advance(absl::Hours(1));
  const std::string young = RunJob();
  fake_clock_.Advance(absl::Hours(1) + absl::Minutes(2));
  Await([&] { return Watch(old, 0).size() == 1; });
  const std::vector<v1::JobEvent> left = Watch(old, 0);
  EXPECT_EQ(left[0].sequence(), newest);
  EXPECT_EQ(left[0].job_state().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Get(old)->last_sequence(), newest);
  EXPECT_EQ(static_cast<int64_t>(Watch(young, 0).size()), Get(young)->last_sequence());
  // Who comes back to the middle of what is gone is told, not given something else.
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchJobRequest request;
  request.set_name(old);
  request.set_after_sequence(1);
  const auto stream = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  EXPECT_FALSE(stream->Read(&event));
  const absl::Status status = FromGrpcStatus(stream->Finish());
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_EQ(GetReason(status), "EVENTS_EXPIRED");
  // Nor is who saw more than there is: the store was put back to what it once was.
  grpc::ClientContext ahead;
  SetDeadline(&ahead);
  request.set_after_sequence(newest + 1);
  const auto stream_ahead = jobs_->WatchJob(&ahead, request);
  EXPECT_FALSE(stream_ahead->Read(&event));
  EXPECT_TRUE(absl::IsOutOfRange(FromGrpcStatus(stream_ahead->Finish())));
  Restart();
  EXPECT_EQ(Watch(old, 0).size(), 1u);
  coordinator_.reset();
  EXPECT_EQ(StoreCheck::Run(options_.data_dir)->problem_count, 0);
}

}  // namespace
}  // namespace plumbline::server
