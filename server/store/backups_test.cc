#include "server/store/backups.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "server/store/keys.h"
#include "server/store/testing/step_store_harness.h"

namespace plumbline::server {
namespace {

std::string NewFolder(absl::string_view name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(BackupsTest, EachHoldsWhatWasAcknowledgedBefore) {
  StoreOptions options;
  options.path = NewFolder("backed-up");
  const std::string folder = NewFolder("backups");
  StepStoreHarness harness;
  ASSERT_TRUE(harness.Open(options).ok());
  Backups backups(&harness.store(), folder);
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(harness.Put(MakeTestStep(1, i)).ok());
    const absl::StatusOr<v1::BackupResponse> backup = backups.Create();
    ASSERT_TRUE(backup.ok()) << backup.status();
    EXPECT_EQ(backup->backup_id(), i + 1);
    EXPECT_GT(backup->size_bytes(), 25000 * (i + 1));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Backups::Restore(folder, 2, options.path)));
  harness.Close();
  std::filesystem::remove_all(options.path);
  for (const int64_t id : {2, 0}) {
    options.path = NewFolder("restored");
    EXPECT_TRUE(absl::IsNotFound(Backups::Restore(folder, 9, options.path)));
    std::filesystem::remove_all(options.path);
    const absl::Status restored = Backups::Restore(folder, id, options.path);
    ASSERT_TRUE(restored.ok()) << restored;
    ASSERT_TRUE(harness.Open(options).ok());
    for (int32_t i = 0; i < (id == 0 ? 3 : 2); ++i) {
      const absl::StatusOr<StepStore::SavedStep> step = harness.steps().ReadStep(RunIdOf(1), i);
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_EQ(step->outputs, MakeTestStep(1, i).outputs);
    }
    EXPECT_TRUE(harness.steps().FindInconsistencies()->empty());
    harness.Close();
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
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
  }
  StepStoreHarness harness;
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = harness.Open(options);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(harness.store().format().store_id(), "old");
    EXPECT_EQ(harness.store().NewestJobNumber(), 7);
    EXPECT_TRUE(harness.Put(MakeTestStep(1, round)).ok());
  }
}

}  // namespace
}  // namespace plumbline::server
