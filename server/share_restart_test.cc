// The fair share over a restart: what every group has used of the workers' time is known
// afterwards.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/clock_fake.h"
#include "gtest/gtest.h"
#include "server/testing/coordinator_fixture.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

class ShareRestartTest : public CoordinatorTest {
 protected:
  // A job of the team's with many tasks. Its name.
  std::string CreateOf(const std::string& team) {
    v1::CreateJobRequest request = ReplayOfMany(6);
    (*request.mutable_spec()->mutable_labels())["team"] = team;
    const absl::StatusOr<v1::Job> job = Create(request);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->name() : "";
  }

  // The lease that the worker is given, which must be of the job.
  v1::Lease AcquireOf(const std::string& worker, const std::string& job) {
    const absl::StatusOr<v1::AcquireTaskResponse> response = Acquire(worker, "i");
    EXPECT_TRUE(response.ok()) << response.status();
    const v1::Lease lease = response.ok() ? response->assignment().lease() : v1::Lease();
    EXPECT_EQ(lease.task().substr(0, lease.task().find("/tasks/")), job);
    return lease;
  }
};

TEST_F(ShareRestartTest, WhatEndedAndWhatRunsCounts) {
  options_.clock = &fake_clock_;
  Start();
  for (const char* const worker : {"one", "two", "three"}) ASSERT_TRUE(Register(worker, "i").ok());
  const std::string red = CreateOf("red");
  const std::string blue = CreateOf("blue");
  const v1::Lease first = AcquireOf("one", red);
  const v1::Lease second = AcquireOf("two", blue);
  fake_clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(Complete(second, Passed()).ok());
  fake_clock_.Advance(absl::Seconds(8));
  ASSERT_TRUE(Complete(first, Passed()).ok());

  // Red has used 10 s, blue 2: two of blue's are next, although red's are older.
  Restart();
  const v1::Lease third = AcquireOf("one", blue);
  const v1::Lease fourth = AcquireOf("two", blue);
  fake_clock_.Advance(absl::Seconds(9));
  ASSERT_EQ(Report(third, 1, 1).value(), 1);
  ASSERT_EQ(Report(fourth, 1, 1).value(), 1);

  // By now blue has used 20 s, 18 of them with what runs still.
  Restart();
  AcquireOf("three", red);
}

TEST_F(ShareRestartTest, IsKnownAfterAKill) {
  ServerProcess::Options options;
  options.folder = options_.data_dir;
  auto server = std::make_unique<ServerProcess>(options);
  ASSERT_TRUE(server->serves());
  const auto connect = [&] {
    jobs_ = v1::JobService::NewStub(server->Connect());
    workers_ = v1::WorkerService::NewStub(server->Connect());
  };
  connect();
  for (const char* const worker : {"one", "two"}) ASSERT_TRUE(Register(worker, "i").ok());
  const std::string red = CreateOf("red");
  const std::string blue = CreateOf("blue");
  // Red's attempt begins before blue's and ends after it.
  const v1::Lease first = AcquireOf("one", red);
  const v1::Lease second = AcquireOf("two", blue);
  ASSERT_TRUE(Complete(second, Passed()).ok());
  ASSERT_TRUE(Complete(first, Passed()).ok());
  server->Kill();
  server = std::make_unique<ServerProcess>(options);
  ASSERT_TRUE(server->serves());
  connect();
  AcquireOf("one", blue);
}

}  // namespace
}  // namespace plumbline::server
