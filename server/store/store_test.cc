#include "server/store/store.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/status.h"
#include "gtest/gtest.h"

namespace plumbline::server {
namespace {

class StoreTest : public testing::Test {
 protected:
  void Open(int64_t max_log_entries = 1 << 20) {
    store_.reset();
    StoreOptions options;
    options.path = absl::StrCat(testing::TempDir(), "/store-",
                                testing::UnitTest::GetInstance()->current_test_info()->name());
    options.max_log_entries = max_log_entries;
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    path_ = options.path;
  }

  static v1::JobEvent LogEvent(const std::string& message) {
    v1::JobEvent event;
    event.mutable_log()->set_message(message);
    return event;
  }

  static store::LeaseRecord Lease(int64_t token) {
    store::LeaseRecord lease;
    lease.set_fencing_token(token);
    return lease;
  }

  static store::JobRecord Record(const std::string& id, const std::string& request_id = "") {
    store::JobRecord record;
    record.mutable_job()->set_name("jobs/" + id);
    record.set_request_id(request_id);
    return record;
  }

  std::unique_ptr<Store> store_;
  std::string path_;
};

TEST_F(StoreTest, KeepsWhatWasCommittedOverAReopening) {
  Open();
  const std::string store_id = store_->format().store_id();
  WriteSet set;
  set.CreateJob(1, Record("alpha", "request"));
  store::TaskRecord task;
  task.mutable_task()->set_title("layout tiny");
  set.PutTask({1, 0}, task);
  set.GrantLease({1, 0}, Lease(5));
  set.AppendEvent(1, LogEvent("first"));
  ASSERT_TRUE(store_->CommitAndWait(&set).ok());
  Open();
  EXPECT_EQ(store_->format().store_id(), store_id);
  EXPECT_EQ(store_->NewestJobNumber().value(), 1);
  EXPECT_EQ(store_->NewestFencingToken().value(), 5);
  EXPECT_EQ(store_->FindJob("alpha").value(), 1);
  EXPECT_EQ(store_->FindRequest("request").value(), 1);
  EXPECT_EQ(store_->LiveJobs().value(), std::vector<int64_t>{1});
  ASSERT_EQ(store_->ReadTasks(1)->size(), 1u);
  EXPECT_EQ(store_->ReadTasks(1)->front().task().title(), "layout tiny");
  EXPECT_EQ(store_->ReadEvents(1, 0, 10, 1 << 20)->front().log().message(), "first");
  EXPECT_TRUE(store_->CheckLease({1, 0}, 5).ok());
}

TEST_F(StoreTest, RefusesEveryWriteUnderAStaleToken) {
  Open();
  WriteSet grants;
  grants.GrantLease({1, 0}, Lease(7));
  ASSERT_TRUE(store_->CommitAndWait(&grants).ok());
  WriteSet newer;
  newer.GrantLease({1, 0}, Lease(8));
  ASSERT_TRUE(store_->CommitAndWait(&newer).ok());

  WriteSet stale;
  stale.RequireLease({1, 0}, 7);
  stale.AppendEvent(1, LogEvent("stale"));
  const absl::Status status = store_->Commit(&stale, [](absl::Status) { FAIL(); });
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(GetReason(status), kLeaseLostReason);
  EXPECT_TRUE(store_->ReadEvents(1, 0, 10, 1 << 20)->empty());

  WriteSet fresh;
  fresh.RequireLease({1, 0}, 8);
  fresh.AppendEvent(1, LogEvent("fresh"));
  fresh.EndLease({1, 0});
  ASSERT_TRUE(store_->CommitAndWait(&fresh).ok());
  WriteSet after;
  after.RequireLease({1, 0}, 8);
  EXPECT_TRUE(absl::IsAborted(store_->CommitAndWait(&after)));
  Open();
  EXPECT_TRUE(absl::IsAborted(store_->CheckLease({1, 0}, 8)));
  EXPECT_TRUE(absl::IsAborted(store_->CheckLease({1, 0}, 0)));
}

TEST_F(StoreTest, NumbersEventsWithoutGapsFromManyThreadsAndReopenings) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  constexpr int kJobs = 3;
  std::vector<int> expected(kJobs + 1, 0);
  for (int round = 0; round < 4; ++round) {
    Open();
    const int sets = 50 + static_cast<int>(random() % 50);
    absl::BlockingCounter done(sets);
    for (int i = 0; i < sets; ++i) {
      WriteSet set;
      const int64_t job = 1 + static_cast<int64_t>(random() % kJobs);
      const int events = 1 + static_cast<int>(random() % 3);
      for (int k = 0; k < events; ++k) {
        set.AppendEvent(job, LogEvent(absl::StrCat(++expected[job])));
      }
      ASSERT_TRUE(store_
                      ->Commit(&set,
                               [&done](absl::Status status) {
                                 EXPECT_TRUE(status.ok()) << status;
                                 done.DecrementCount();
                               })
                      .ok());
    }
    done.Wait();
  }
  Open();
  int64_t all = 0;
  for (int64_t job = 1; job <= kJobs; ++job) {
    const std::vector<v1::JobEvent> events = store_->ReadEvents(job, 0, 1 << 20, 1 << 30).value();
    ASSERT_EQ(static_cast<int>(events.size()), expected[job]);
    for (int i = 0; i < expected[job]; ++i) {
      EXPECT_EQ(events[i].sequence(), i + 1);
      EXPECT_EQ(events[i].log().message(), absl::StrCat(i + 1));
    }
    all += expected[job];
  }
  EXPECT_EQ(store_->OldestAndNewestRevision().value(), std::make_pair(int64_t{1}, all));
}

TEST_F(StoreTest, PagesEventsByCountAndBytes) {
  Open();
  WriteSet set;
  for (int i = 1; i <= 10; ++i) set.AppendEvent(1, LogEvent(std::string(1000, 'x')));
  set.AppendEvent(2, LogEvent("another job's"));
  ASSERT_TRUE(store_->CommitAndWait(&set).ok());
  EXPECT_EQ(store_->ReadEvents(1, 0, 4, 1 << 20)->size(), 4u);
  EXPECT_EQ(store_->ReadEvents(1, 8, 4, 1 << 20)->size(), 2u);
  EXPECT_EQ(store_->ReadEvents(1, 0, 100, 1)->size(), 1u);
  EXPECT_EQ(store_->ReadEvents(1, 10, 4, 1 << 20)->size(), 0u);
  EXPECT_EQ(store_->NewestSequence(1).value(), 10);
  EXPECT_EQ(store_->NewestSequence(3).value(), 0);
}

TEST_F(StoreTest, DeletesAJobWholeAndNeverUsesItsNumberAgain) {
  Open();
  WriteSet set;
  set.CreateJob(1, Record("alpha", "request"));
  set.AppendEvent(1, LogEvent("first"));
  set.PutReport({1, 0}, v1::TaskReport());
  v1::Artifact artifact;
  artifact.set_name("artifacts/a");
  artifact.set_file_name("f");
  set.PutArtifact(artifact, TaskKey{1, 0});
  ASSERT_TRUE(store_->CommitAndWait(&set).ok());
  ASSERT_EQ(store_->ReadArtifactsOf(1)->size(), 1u);
  WriteSet finish;
  finish.PutJob(1, Record("alpha", "request"), /*live=*/false);
  ASSERT_TRUE(store_->CommitAndWait(&finish).ok());
  EXPECT_TRUE(store_->LiveJobs()->empty());
  WriteSet deletion;
  deletion.DeleteJob(1, Record("alpha", "request"));
  deletion.DeleteArtifact(artifact);
  ASSERT_TRUE(store_->CommitAndWait(&deletion).ok());
  Open();
  EXPECT_TRUE(absl::IsNotFound(store_->FindJob("alpha").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindRequest("request").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadReport({1, 0}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadArtifact("artifacts/a").status()));
  EXPECT_TRUE(store_->ReadArtifactsOf(1)->empty());
  EXPECT_TRUE(store_->ReadEvents(1, 0, 10, 1 << 20)->empty());
  EXPECT_EQ(store_->NewestJobNumber().value(), 1);
  const std::vector<Store::NumberedRevision> revisions = store_->ReadRevisions(1, 10).value();
  ASSERT_EQ(revisions.size(), 1u);
  EXPECT_EQ(revisions[0].revision.deleted().name(), "jobs/alpha");
}

TEST_F(StoreTest, VisitsJobsNewestFirst) {
  Open();
  for (int64_t job = 1; job <= 300; ++job) {
    WriteSet set;
    set.CreateJob(job, Record(absl::StrCat("job", job)));
    if (job == 300) {
      ASSERT_TRUE(store_->CommitAndWait(&set).ok());
    } else {
      ASSERT_TRUE(store_->Commit(&set, nullptr).ok());
    }
  }
  std::vector<int64_t> seen;
  ASSERT_TRUE(store_
                  ->VisitJobs(299,
                              [&seen](int64_t job, const store::JobRecord&) {
                                seen.push_back(job);
                                return seen.size() < 3;
                              })
                  .ok());
  EXPECT_EQ(seen, (std::vector<int64_t>{298, 297, 296}));
}

TEST_F(StoreTest, KeepsTheNewestOfTheLogs) {
  Open(/*max_log_entries=*/20);
  for (int i = 0; i < 50; ++i) {
    WriteSet set;
    set.AppendEvent(1, LogEvent("x"));
    set.AppendAudit(v1::AuditEvent());
    ASSERT_TRUE(store_->CommitAndWait(&set).ok());
  }
  const auto [oldest, newest] = store_->OldestAndNewestRevision().value();
  EXPECT_EQ(newest, 50);
  EXPECT_GE(oldest, 50 - 22);
  EXPECT_LE(oldest, 31);
  int audits = 0;
  ASSERT_TRUE(store_
                  ->VisitAudit(1000,
                               [&audits](const v1::AuditEvent& event) {
                                 EXPECT_EQ(event.sequence(), 50 - audits++);
                                 return true;
                               })
                  .ok());
  EXPECT_GE(audits, 20);
  EXPECT_LE(audits, 22);
}

TEST_F(StoreTest, RefusesAFolderInUse) {
  Open();
  StoreOptions options;
  options.path = path_;
  const absl::Status status = Store::Open(options).status();
  EXPECT_EQ(GetReason(status), "STORE_IN_USE") << status;
}

}  // namespace
}  // namespace plumbline::server
