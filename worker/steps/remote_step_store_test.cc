#include "worker/steps/remote_step_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/clock_fake.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::steps {
namespace {

using ::testing::ElementsAre;
using worker::StopReason;

constexpr char kRun[] = "runs/abc";

class RemoteStepStoreTest : public testing::Test {
 protected:
  RemoteStepStoreTest() {
    v1::RegisterWorkerRequest registration;
    registration.set_incarnation("i");
    EXPECT_TRUE(coordinator_.RegisterWorker(registration, {}).ok());
    task_ = Acquire(7);
    facts_.identity.set_sha256("abc");
    folder_ = absl::StrCat(testing::TempDir(), "/",
                           testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::unique_ptr<worker::HeldTask> Acquire(int64_t token) {
    coordinator_.Assign(token);
    v1::AcquireTaskRequest request;
    request.set_incarnation("i");
    return std::make_unique<worker::HeldTask>(coordinator_.AcquireTask(request, {})->assignment());
  }

  std::unique_ptr<RemoteStepStore> Open(BlobCache* cache = nullptr) {
    return std::make_unique<RemoteStepStore>(&coordinator_, task_.get(), &clock_, cache, 1);
  }

  // Two tensors whose bytes tell which step they are of.
  static SavedStep Step(int index) {
    SavedStep step;
    step.record.set_index(index);
    step.record.set_input_digest(absl::StrCat("input ", index));
    for (const char* name : {"velocity.video", "velocity.audio"}) {
      step.tensors.push_back(absl::StrCat(name, " of ", index));
      v1::TensorDigest& output = *step.record.add_outputs();
      output.set_name(name);
      output.set_size_bytes(static_cast<int64_t>(step.tensors.back().size()));
      output.set_sha256(Sha256Hex(step.tensors.back()));
    }
    return step;
  }

  void SaveSteps(int count, BlobCache* cache = nullptr) {
    const auto store = Open(cache);
    for (int i = 0; i < count; ++i) ASSERT_TRUE(store->Save(facts_, Step(i)).ok());
    ASSERT_TRUE(store->Flush().ok());
  }

  // What Fetch hands over, as indices; the bytes are checked.
  static std::vector<int> Fetched(RemoteStepStore* store, int first, int count) {
    std::vector<int> indices;
    const absl::Status status = store->Fetch(kRun, first, count, [&](SavedStep step) {
      EXPECT_EQ(step.tensors, Step(step.record.index()).tensors);
      indices.push_back(step.record.index());
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return indices;
  }

  // Runs `work` on a thread while the clock goes on.
  void WhileTimePasses(const std::function<void()>& work) {
    absl::Notification done;
    std::thread thread([&] {
      work();
      done.Notify();
    });
    while (!done.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      clock_.Advance(absl::Seconds(1));
    }
    thread.join();
  }

  FakeClock clock_;
  worker::FakeCoordinator coordinator_;
  std::unique_ptr<worker::HeldTask> task_;
  RunFacts facts_;
  std::string folder_;
};

TEST_F(RemoteStepStoreTest, SavesAndFetches) {
  SaveSteps(4);
  const auto store = Open();
  EXPECT_EQ(store->GetRun(kRun)->steps_size(), 4);
  EXPECT_THAT(Fetched(store.get(), 1, 2), ElementsAre(1, 2));
  EXPECT_THAT(Fetched(store.get(), 2, 9), ElementsAre(2, 3));
  EXPECT_TRUE(absl::IsNotFound(store->GetRun("runs/other").status()));
}

TEST_F(RemoteStepStoreTest, ARunIsKnownBeforeItsFirstStep) {
  const auto store = Open();
  EXPECT_TRUE(absl::IsNotFound(store->GetRun(kRun).status()));
  EXPECT_TRUE(store->Begin(facts_).ok());
  EXPECT_EQ(store->GetRun(kRun)->steps_size(), 0);
  coordinator_.LoseLease();
  EXPECT_FALSE(store->Begin(facts_).ok());
  EXPECT_EQ(task_->stop_reason(), StopReason::kLeaseLost);
}

TEST_F(RemoteStepStoreTest, AStepCountsAsSavedOnlyWhenAcknowledged) {
  coordinator_.SetAway(true);
  const auto store = Open();
  ASSERT_TRUE(store->Save(facts_, Step(0)).ok());
  EXPECT_TRUE(store->TakeAcknowledged().empty());
  WhileTimePasses([&] {
    coordinator_.SetAway(false);
    EXPECT_TRUE(store->Flush().ok());
  });
  const std::vector<v1::StepRecord> acknowledged = store->TakeAcknowledged();
  ASSERT_EQ(acknowledged.size(), 1u);
  EXPECT_EQ(acknowledged[0].run(), kRun);
  EXPECT_TRUE(store->TakeAcknowledged().empty());
}

TEST_F(RemoteStepStoreTest, AnswerThatWasLostIsAskedForAgain) {
  coordinator_.FailPuts({{absl::UnavailableError("torn"), /*stored=*/true}});
  WhileTimePasses([&] { SaveSteps(2); });
  EXPECT_EQ(coordinator_.put_step_calls(), 3);
}

TEST_F(RemoteStepStoreTest, LostLeaseStopsTheTask) {
  const auto store = Open();
  coordinator_.LoseLease();
  ASSERT_TRUE(store->Save(facts_, Step(0)).ok());
  EXPECT_FALSE(store->Flush().ok());
  EXPECT_EQ(task_->stop_reason(), StopReason::kLeaseLost);
  EXPECT_FALSE(store->Save(facts_, Step(1)).ok());
  EXPECT_TRUE(store->TakeAcknowledged().empty());
}

TEST_F(RemoteStepStoreTest, OtherBytesUnderOneDigestAreAnError) {
  SaveSteps(1);
  const auto store = Open();
  SavedStep other = Step(0);
  other.tensors[1][0] ^= 1;
  ASSERT_TRUE(store->Save(facts_, std::move(other)).ok());
  EXPECT_TRUE(absl::IsDataLoss(store->Flush()));
  EXPECT_EQ(task_->stop_reason(), StopReason::kNone);
}

TEST_F(RemoteStepStoreTest, BrokenStreamGoesOnWhereItBroke) {
  SaveSteps(5);
  coordinator_.BreakStreams({2, 0, 1});
  WhileTimePasses([&] {
    const auto store = Open();
    EXPECT_THAT(Fetched(store.get(), 0, 5), ElementsAre(0, 1, 2, 3, 4));
  });
  EXPECT_EQ(coordinator_.get_step_calls(), 4);
}

TEST_F(RemoteStepStoreTest, FetchEndsAtAQuarantinedStep) {
  SaveSteps(5);
  coordinator_.Quarantine(kRun, 2);
  const auto store = Open();
  EXPECT_TRUE(store->GetRun(kRun)->steps(2).quarantined());
  EXPECT_THAT(Fetched(store.get(), 0, 5), ElementsAre(0, 1));
  EXPECT_THAT(Fetched(store.get(), 2, 3), ElementsAre());
  EXPECT_THAT(Fetched(store.get(), 3, 2), ElementsAre(3, 4));
}

TEST_F(RemoteStepStoreTest, SinkErrorEndsTheFetch) {
  SaveSteps(3);
  const auto store = Open();
  int calls = 0;
  // An error that the coordinator's would be repeated for.
  const absl::Status status = store->Fetch(kRun, 0, 3, [&](SavedStep) {
    ++calls;
    return absl::CancelledError("enough");
  });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(calls, 1);
}

TEST_F(RemoteStepStoreTest, ReadingStopsWithTheTask) {
  SaveSteps(1);
  coordinator_.SetAway(true);
  const auto store = Open();
  task_->Stop(StopReason::kRelease);
  EXPECT_TRUE(absl::IsCancelled(store->GetRun(kRun).status()));
  // What is computed may still be stored.
  coordinator_.SetAway(false);
  EXPECT_TRUE(store->Save(facts_, Step(1)).ok());
  EXPECT_TRUE(store->Flush().ok());
  task_->Stop(StopReason::kLeaseLost);
  EXPECT_TRUE(absl::IsCancelled(store->Save(facts_, Step(2))));
}

TEST_F(RemoteStepStoreTest, CachedStepsAreNotFetchedButVerifiedWhereTheyAreKept) {
  BlobCache cache(folder_, 1 << 20);
  SaveSteps(4, &cache);
  const auto store = Open(&cache);
  ASSERT_TRUE(store->GetRun(kRun).ok());
  EXPECT_EQ(coordinator_.verify_run_calls(), 1);
  EXPECT_THAT(Fetched(store.get(), 0, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(coordinator_.get_step_calls(), 0);
  coordinator_.Quarantine(kRun, 1);
  ASSERT_TRUE(store->GetRun(kRun).ok());
  EXPECT_THAT(Fetched(store.get(), 0, 4), ElementsAre(0));
}

TEST_F(RemoteStepStoreTest, CachedFileWithOtherBytesIsFetched) {
  BlobCache cache(folder_, 1 << 20);
  SaveSteps(3, &cache);
  const std::string digest = Step(1).record.outputs(0).sha256();
  std::ofstream(absl::StrCat(folder_, "/", digest)) << "velocity.video of 7";
  const auto store = Open(&cache);
  ASSERT_TRUE(store->GetRun(kRun).ok());
  EXPECT_THAT(Fetched(store.get(), 0, 3), ElementsAre(0, 1, 2));
  EXPECT_EQ(coordinator_.get_step_calls(), 1);
  EXPECT_FALSE(cache.Contains(digest));
}

TEST_F(RemoteStepStoreTest, CacheKeepsWithinItsLimit) {
  const std::string bytes(100, 'x');
  BlobCache cache(folder_, 250);
  std::vector<std::string> digests;
  for (char c : {'a', 'b', 'c'}) {
    const std::string blob(100, c);
    digests.push_back(Sha256Hex(blob));
    cache.Put(digests.back(), blob);
    // Files' times are coarse; the test decides which is older.
    std::filesystem::last_write_time(
        absl::StrCat(folder_, "/", digests.back()),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 - digests.size()));
  }
  cache.Put(Sha256Hex(bytes), bytes);
  EXPECT_FALSE(cache.Contains(digests[0]));
  EXPECT_FALSE(cache.Contains(digests[1]));
  EXPECT_TRUE(cache.Contains(digests[2]));
  EXPECT_EQ(cache.Get(Sha256Hex(bytes), 100), bytes);
  EXPECT_EQ(cache.Get("../../etc/passwd", 100), std::nullopt);
}

}  // namespace
}  // namespace plumbline::steps
