// Streams of events, and what workers report, through gRPC.
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/status.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

class EventsTest : public CoordinatorTest {
 protected:
  // A job with one task, held.
  void StartHeldTask() {
    Start();
    job_ = Create(Replay({"tiny"}))->name();
    ASSERT_TRUE(Register("one", "i1").ok());
    lease_ = Acquire("one", "i1")->assignment().lease();
  }

  static std::vector<std::string> LogMessages(const std::vector<v1::JobEvent>& events) {
    std::vector<std::string> messages;
    for (const v1::JobEvent& event : events) {
      if (event.has_log()) messages.push_back(event.log().message());
    }
    return messages;
  }

  std::string job_;
  v1::Lease lease_;
};

TEST_F(EventsTest, AreKeptOnceWhateverIsSentAgain) {
  StartHeldTask();
  EXPECT_EQ(Report(lease_, 1, 2).value(), 2);
  EXPECT_EQ(Report(lease_, 1, 2).value(), 2);
  EXPECT_EQ(Report(lease_, 2, 4).value(), 4);
  const absl::Status gap = Report(lease_, 6, 7).status();
  EXPECT_TRUE(absl::IsInvalidArgument(gap)) << gap;
  EXPECT_EQ(Report(lease_, 5, 5).value(), 5);
  v1::Lease stale = lease_;
  stale.set_fencing_token(lease_.fencing_token() - 1);
  const absl::Status lost = Report(stale, 6, 6).status();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_EQ(GetReason(lost), kLeaseLostReason);
  EXPECT_TRUE(absl::IsUnavailable(Complete(lease_, Passed(), 6)));
  ASSERT_TRUE(Complete(lease_, Passed(), 5).ok());
  EXPECT_EQ(LogMessages(Watch(job_, 0)), (std::vector<std::string>{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(GetReason(Report(lease_, 6, 6).status()), kLeaseLostReason);
}

TEST_F(EventsTest, AreRefusedUnlessFromWorkers) {
  StartHeldTask();
  grpc::ClientContext context;
  v1::ReportEventsResponse response;
  const auto stream = workers_->ReportEvents(&context, &response);
  v1::ReportEventsRequest request;
  request.set_task(lease_.task());
  request.set_fencing_token(lease_.fencing_token());
  request.add_events()->set_client_sequence(1);
  request.mutable_events(0)->mutable_event()->mutable_job_state();
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(EventsTest, AreWatchedOverARestartWithoutLossOrRepetition) {
  StartHeldTask();
  ASSERT_EQ(Report(lease_, 1, 10).value(), 10);
  std::vector<v1::JobEvent> seen = Watch(job_, 0, 7);
  ASSERT_EQ(seen.size(), 7u);
  Restart();
  // The lease goes on, and what was acknowledged is known.
  EXPECT_EQ(Report(lease_, 8, 12).value(), 12);
  ASSERT_TRUE(Complete(lease_, Passed(), 12).ok());
  for (const v1::JobEvent& event : Watch(job_, seen.back().sequence())) seen.push_back(event);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].sequence(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(LogMessages(seen).size(), 12u);
  const std::vector<v1::JobEvent> again = Watch(job_, 0);
  ASSERT_EQ(again.size(), seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(again[i].SerializeAsString(), seen[i].SerializeAsString());
  }
  EXPECT_TRUE(Watch(job_, seen.back().sequence()).empty());
}

TEST_F(EventsTest, ReachManyWatchersAsTheyCome) {
  StartHeldTask();
  constexpr int kWatchers = 20;
  constexpr int kEvents = 500;
  std::vector<std::thread> watchers;
  std::vector<std::vector<v1::JobEvent>> seen(kWatchers);
  for (int i = 0; i < kWatchers; ++i) {
    watchers.emplace_back([this, &seen, i] { seen[i] = Watch(job_, 0); });
  }
  for (int i = 1; i <= kEvents; i += 10) ASSERT_EQ(Report(lease_, i, i + 9).value(), i + 9);
  ASSERT_TRUE(Complete(lease_, Passed()).ok());
  for (std::thread& watcher : watchers) watcher.join();
  for (const std::vector<v1::JobEvent>& events : seen) {
    EXPECT_EQ(LogMessages(events).size(), static_cast<size_t>(kEvents));
    for (size_t k = 0; k < events.size(); ++k) {
      ASSERT_EQ(events[k].sequence(), static_cast<int64_t>(k) + 1);
    }
  }
}

TEST_F(EventsTest, OfADeadAttemptAreMarked) {
  StartHeldTask();
  ASSERT_EQ(Report(lease_, 1, 3).value(), 3);
  // Another process of the same worker.
  ASSERT_TRUE(Register("one", "i2").ok());
  EXPECT_EQ(GetReason(Report(lease_, 4, 4).status()), kLeaseLostReason);
  const v1::Lease second = Acquire("one", "i2")->assignment().lease();
  EXPECT_GT(second.fencing_token(), lease_.fencing_token());
  EXPECT_EQ(second.attempt(), 2);
  ASSERT_TRUE(Complete(second, Passed()).ok());
  EXPECT_EQ(GetReason(Complete(lease_, Passed())), kLeaseLostReason);
  int64_t first = 0;
  int64_t last = 0;
  for (const v1::JobEvent& event : Watch(job_, 0)) {
    if (event.has_log()) {
      if (first == 0) first = event.sequence();
      last = event.sequence();
    }
    if (!event.has_attempt_superseded()) continue;
    EXPECT_EQ(event.attempt_superseded().superseded_attempt(), 1);
    EXPECT_EQ(event.attempt_superseded().first_sequence(), first);
    EXPECT_EQ(event.attempt_superseded().last_sequence(), last);
    first = -1;
  }
  EXPECT_EQ(first, -1) << "no event said so";
  const v1::Task task = Get(job_)->tasks(0);
  ASSERT_EQ(task.attempts_size(), 2);
  EXPECT_EQ(task.attempts(0).end(), v1::ATTEMPT_END_WORKER_RESTARTED);
  EXPECT_EQ(task.attempts(1).end(), v1::ATTEMPT_END_COMPLETED);
}

class WatchJobsTest : public CoordinatorTest {
 protected:
  // Reads until `enough` says so.
  std::vector<v1::WatchJobsResponse> WatchAll(
      const v1::WatchJobsRequest& request,
      const std::function<bool(const v1::WatchJobsResponse&)>& enough) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stream = jobs_->WatchJobs(&context, request);
    std::vector<v1::WatchJobsResponse> updates;
    v1::WatchJobsResponse update;
    while (stream->Read(&update)) {
      updates.push_back(update);
      if (!enough(update)) continue;
      context.TryCancel();
      while (stream->Read(&update)) {
      }
      break;
    }
    status_ = FromGrpcStatus(stream->Finish());
    return updates;
  }

  static bool IsSnapshotEnd(const v1::WatchJobsResponse& update) {
    return update.snapshot_complete();
  }

  absl::Status status_;
};

TEST_F(WatchJobsTest, ShowsThePresentAndThenResumesOverARestart) {
  Start();
  const std::string first = Create(Replay({"tiny"}))->name();
  const std::string second = Create(Replay({"tiny"}))->name();
  v1::WatchJobsRequest request;
  request.add_event_kinds(v1::EVENT_KIND_LOG);
  std::vector<v1::WatchJobsResponse> updates = WatchAll(request, IsSnapshotEnd);
  ASSERT_EQ(updates.size(), 3u);
  EXPECT_EQ(updates[0].job().name(), second);
  EXPECT_EQ(updates[1].job().name(), first);
  request.set_resume_token(updates[2].resume_token());

  ASSERT_TRUE(Register("one", "i1").ok());
  const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
  ASSERT_EQ(Report(lease, 1, 2).value(), 2);
  Restart();
  ASSERT_EQ(Report(lease, 3, 3).value(), 3);
  ASSERT_TRUE(Complete(lease, Passed()).ok());
  v1::DeleteJobRequest deletion;
  deletion.set_name(first);
  ASSERT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::DeleteJob, deletion).ok());
  updates = WatchAll(request,
                     [](const v1::WatchJobsResponse& update) { return !update.removed().empty(); });
  EXPECT_EQ(updates.back().removed(), first);

  // Each event once, wherever the stream is cut.
  const std::string third = Create(Replay({"small"}))->name();
  const v1::Lease next = Acquire("one", "i1")->assignment().lease();
  ASSERT_EQ(next.task(), second + "/tasks/0");
  ASSERT_EQ(Report(next, 1, 4).value(), 4);
  ASSERT_TRUE(Complete(next, Passed()).ok());
  request.set_resume_token(updates.back().resume_token());
  std::vector<std::string> logs;
  bool finished = false;
  while (!finished) {
    updates = WatchAll(request, [](const v1::WatchJobsResponse&) { return true; });
    ASSERT_EQ(updates.size(), 1u);
    if (updates[0].has_event()) logs.push_back(updates[0].event().log().message());
    finished = updates[0].job().name() == second &&
               updates[0].job().state() == v1::JOB_STATE_SUCCEEDED && logs.size() == 4;
    if (request.resume_token() == updates[0].resume_token()) {
      // Cut between a job and its event: the job comes again.
      ASSERT_TRUE(updates[0].has_job());
      break;
    }
    request.set_resume_token(updates[0].resume_token());
  }
  EXPECT_EQ(logs, (std::vector<std::string>{"1", "2", "3", "4"}));
}

TEST_F(WatchJobsTest, TellsWhatNoLongerMatches) {
  Start();
  const std::string name = Create(Replay({"tiny"}))->name();
  v1::WatchJobsRequest request;
  request.mutable_filter()->add_states(v1::JOB_STATE_QUEUED);
  absl::Notification began;
  std::thread worker([&] {
    began.WaitForNotification();
    ASSERT_TRUE(Register("one", "i1").ok());
    ASSERT_TRUE(Acquire("one", "i1")->has_assignment());
  });
  const std::vector<v1::WatchJobsResponse> updates =
      WatchAll(request, [&](const v1::WatchJobsResponse& update) {
        if (update.snapshot_complete()) began.Notify();
        return !update.removed().empty();
      });
  worker.join();
  EXPECT_EQ(updates.back().removed(), name);
}

TEST_F(WatchJobsTest, RefusesATokenOfAnotherStore) {
  Start();
  v1::WatchJobsRequest request;
  request.set_resume_token("elsewhere.3");
  WatchAll(request, IsSnapshotEnd);
  EXPECT_TRUE(absl::IsOutOfRange(status_)) << status_;
  request.set_resume_token("nonsense");
  WatchAll(request, IsSnapshotEnd);
  EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
}

}  // namespace
}  // namespace plumbline::server
