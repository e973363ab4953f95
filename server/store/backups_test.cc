#include "server/store/backups.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "server/store/keys.h"
#include "server/store/store_check.h"
#include "server/store/testing/step_store_harness.h"

namespace plumbline::server {
namespace {

std::string NewFolder(absl::string_view name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  return folder;
}

void PutArtifact(ArtifactFiles* files, Store* store, int number) {
  v1::Artifact artifact;
  artifact.set_name(absl::StrCat("artifacts/a", number));
  artifact.set_file_name(absl::StrCat("file", number));
  const std::string bytes = absl::StrCat("bytes of ", number);
  artifact.set_size_bytes(static_cast<int64_t>(bytes.size()));
  artifact.set_sha256(Sha256Hex(bytes));
  const std::unique_ptr<ArtifactFiles::Writer> writer = files->NewArtifact(artifact.name()).value();
  ASSERT_TRUE(writer->Append(bytes).ok());
  ASSERT_TRUE(writer->Finish(artifact.size_bytes(), artifact.sha256()).ok());
  WriteSet set;
  set.PutArtifact(artifact, std::nullopt);
  ASSERT_TRUE(store->CommitAndWait(&set).ok());
}

TEST(BackupsTest, EachHoldsWhatWasAcknowledgedBefore) {
  const std::string data = NewFolder("backed-up");
  StoreOptions options;
  options.path = data + "/store";
  const std::string folder = NewFolder("backups") + "/made/when/needed";
  StepStoreHarness harness;
  ASSERT_TRUE(harness.Open(options).ok());
  const std::unique_ptr<ArtifactFiles> files = ArtifactFiles::Open(data, {}, {}).value();
  Backups backups(&harness.store(), &harness.steps(), files.get(), folder);
  const absl::Status refused =
      Backups(&harness.store(), &harness.steps(), files.get(), data + "/store/LOCK/backups")
          .Create()
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "/store/LOCK/backups: ")) << refused;
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(harness.Put(MakeTestStep(1, i)).ok());
    PutArtifact(files.get(), &harness.store(), i);
    const absl::StatusOr<v1::BackupResponse> backup = backups.Create();
    ASSERT_TRUE(backup.ok()) << backup.status();
    EXPECT_EQ(backup->backup_id(), i + 1);
    EXPECT_GT(backup->size_bytes(), 25000 * (i + 1));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Backups::Restore(folder, 2, data)));
  const std::string store_id = harness.store().format().store_id();
  harness.Close();
  std::filesystem::remove_all(data);
  for (const int64_t id : {2, 0}) {
    const std::string restored_data = NewFolder("restored");
    options.path = restored_data + "/store";
    EXPECT_TRUE(absl::IsNotFound(Backups::Restore(folder, 9, restored_data)));
    EXPECT_FALSE(std::filesystem::exists(restored_data));
    // As a restore that was cut off left it.
    ASSERT_TRUE(std::filesystem::create_directories(restored_data + "/store.restoring/x"));
    const absl::Status restored = Backups::Restore(folder, id, restored_data);
    ASSERT_TRUE(restored.ok()) << restored;
    const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(restored_data);
    ASSERT_TRUE(check.ok()) << check.status();
    // The harness's lease is of no job.
    EXPECT_FALSE(std::filesystem::exists(restored_data + "/store.restoring"));
    EXPECT_EQ(check->problems, std::vector<std::string>{"a lease is of task 0 of job 1, gone"});
    EXPECT_EQ(check->artifacts, id == 0 ? 3 : 2);
    EXPECT_EQ(check->steps, id == 0 ? 3 : 2);
    ASSERT_TRUE(harness.Open(options).ok());
    // What the store gave out after the backup is not the restored one's.
    EXPECT_TRUE(harness.store().format().restored());
    EXPECT_NE(harness.store().format().store_id(), store_id);
    EXPECT_GT(harness.store().NewestFencingToken().value(), int64_t{1} << 40);
    for (int32_t i = 0; i < (id == 0 ? 3 : 2); ++i) {
      const absl::StatusOr<StepStore::SavedStep> step = harness.steps().ReadStep(RunIdOf(1), i);
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_EQ(step->outputs, MakeTestStep(1, i).outputs);
    }
    EXPECT_TRUE(harness.steps().FindInconsistencies()->empty());
    harness.Close();
  }
}

TEST(BackupsTest, WhatCannotBeMadeWholeIsNone) {
  const std::string data = NewFolder("half-backed-up");
  StoreOptions options;
  options.path = data + "/store";
  const std::string folder = NewFolder("half-backups");
  StepStoreHarness harness;
  ASSERT_TRUE(harness.Open(options).ok());
  const std::unique_ptr<ArtifactFiles> files = ArtifactFiles::Open(data, {}, {}).value();
  Backups backups(&harness.store(), &harness.steps(), files.get(), folder);
  PutArtifact(files.get(), &harness.store(), 0);
  ASSERT_TRUE(backups.Create().ok());
  // The store can be written, the artifacts cannot.
  const std::string artifacts = folder + "/artifacts";
  std::filesystem::rename(artifacts, folder + "/away");
  ASSERT_TRUE(WriteFileAtomically(artifacts, "").ok());
  PutArtifact(files.get(), &harness.store(), 1);
  const absl::Status refused = backups.Create().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  std::filesystem::remove(artifacts);
  std::filesystem::rename(folder + "/away", artifacts);
  harness.Close();
  // The newest is still the one before.
  const std::string restored_data = NewFolder("half-restored");
  const absl::Status restored = Backups::Restore(folder, 0, restored_data);
  ASSERT_TRUE(restored.ok()) << restored;
  const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(restored_data);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->artifacts, 1);
}

// A step's blobs are written without the log: a backup that has the record from the log must have
// the blobs too.
TEST(BackupsTest, EachIsWholeWhileStepsAreWritten) {
  constexpr int kBackups = 8;
  constexpr int kSteps = 8;  // Of a run.
  const std::string data = NewFolder("written-meanwhile");
  StoreOptions options;
  options.path = data + "/store";
  const std::string folder = NewFolder("backups-meanwhile");
  StepStoreHarness harness;
  ASSERT_TRUE(harness.Open(options).ok());
  const std::unique_ptr<ArtifactFiles> files = ArtifactFiles::Open(data, {}, {}).value();
  Backups backups(&harness.store(), &harness.steps(), files.get(), folder);
  std::atomic<bool> over{false};
  std::atomic<int32_t> written{0};
  std::thread writer([&] {
    while (!over) {
      const absl::Status put =
          harness.Put(MakeTestStep(1 + written / kSteps, written % kSteps)).status();
      ASSERT_TRUE(put.ok()) << put;
      ++written;
    }
  });
  std::vector<int32_t> before;
  for (int i = 0; i < kBackups; ++i) {
    before.push_back(written);
    EXPECT_TRUE(backups.Create().ok());
  }
  over = true;
  writer.join();
  harness.Close();
  for (int i = 0; i < kBackups; ++i) {
    const std::string restored = NewFolder("restored-meanwhile");
    ASSERT_TRUE(Backups::Restore(folder, i + 1, restored).ok());
    const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(restored);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->problems, std::vector<std::string>{"a lease is of task 0 of job 1, gone"});
    EXPECT_GE(check->steps, before[i]);
  }
}

// As the first version of the format left it: its families, and its version in the format record.
TEST(StoreFormatTest, AStoreFromBeforeOpensAndTakesSteps) {
  StoreOptions options;
  options.path = NewFolder("old-store");
  store::StoreFormat format;
  format.set_version(1);
  format.set_store_id("old");
  {
    rocksdb::Options database;
    database.create_if_missing = true;
    database.create_missing_column_families = true;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* const name : {"default", "jobs", "leases", "events", "artifacts", "audit"}) {
      families.emplace_back(name, database);
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(database, options.path, families, &handles, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    ASSERT_TRUE(db->Put({}, handles[0], keys::Format(), format.SerializeAsString()).ok());
    ASSERT_TRUE(db->Put({}, handles[0], keys::NewestJob(), keys::Number(7)).ok());
    for (int64_t number = 1; number <= 7; ++number) {
      store::JobRecord job;
      job.mutable_job()->set_name(absl::StrCat("jobs/", number));
      // The last one is live.
      job.mutable_job()->set_state(number < 7 ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_QUEUED);
      if (number < 7) job.mutable_job()->mutable_end_time()->set_seconds(1000 - number);
      ASSERT_TRUE(db->Put({}, handles[1], keys::Job(number), job.SerializeAsString()).ok());
    }
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
  }
  StepStoreHarness harness;
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = harness.Open(options);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(harness.store().format().store_id(), "old");
    EXPECT_EQ(harness.store().NewestJobNumber().value(), 7);
    EXPECT_EQ(harness.store().format().version(), 3);
    const auto finished =
        harness.store().FinishedJobs({absl::UnixEpoch(), 0}, absl::FromUnixSeconds(999), 10);
    ASSERT_TRUE(finished.ok());
    ASSERT_EQ(finished->size(), 5u);
    EXPECT_EQ(finished->front(), std::make_pair(absl::FromUnixSeconds(994), int64_t{6}));
    EXPECT_TRUE(harness.Put(MakeTestStep(1, round)).ok());
  }
}

}  // namespace
}  // namespace plumbline::server
