// What `plumbline-server --check` finds, and that it finds nothing where nothing is wrong.
#include "server/store/store_check.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "server/store/keys.h"
#include "server/store/testing/step_store_harness.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

using testing::Contains;
using testing::HasSubstr;

class StoreCheckTest : public CoordinatorTest {
 protected:
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;

  // A finished job with an artifact, one that runs, one that waits.
  void Fill() {
    Start();
    ASSERT_TRUE(Register("one", "i1").ok());
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<v1::Job> job = Create(Replay({"tiny", "small"}, absl::StrCat("r", i)));
      ASSERT_TRUE(job.ok()) << job.status();
      names_.push_back(job->name());
    }
    for (int i = 0; i < 2; ++i) {
      const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
      ASSERT_TRUE(Report(lease, 1, 5).ok());
      PutArtifact(lease);
      ASSERT_TRUE(Complete(lease, Passed(), 5).ok());
    }
    ASSERT_TRUE(Report(Acquire("one", "i1")->assignment().lease(), 1, 3).ok());
    coordinator_.reset();
  }

  void PutArtifact(const v1::Lease& lease) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::Artifact artifact;
    const auto stream = workers_->PutArtifact(&context, &artifact);
    v1::PutArtifactRequest request;
    v1::PutArtifactRequest::Header& header = *request.mutable_header();
    header.set_task(lease.task());
    header.set_fencing_token(lease.fencing_token());
    header.set_role(v1::ARTIFACT_ROLE_TENSORS);
    header.set_file_name("tensors.safetensors");
    header.set_media_type("application/octet-stream");
    stream->Write(request);
    const std::string bytes = "bytes";
    request.set_chunk(bytes);
    stream->Write(request);
    request.mutable_trailer()->set_size_bytes(5);
    request.mutable_trailer()->set_sha256(Sha256Hex(bytes));
    stream->Write(request);
    stream->WritesDone();
    ASSERT_TRUE(stream->Finish().ok());
    artifact_ = artifact.name();
  }

  std::vector<std::string> Problems() {
    const absl::StatusOr<StoreCheck::Result> result = StoreCheck::Run(options_.data_dir);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->problems : std::vector<std::string>{"not checked"};
  }

  // Opens the database as it is and changes it behind the store's back.
  void Damage(const std::function<void(rocksdb::DB*, const Handles&)>& change) {
    const std::string path = options_.data_dir + "/store";
    rocksdb::Options database;
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(database, path, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (int i = 0; i < kFamilyCount; ++i) {
      families.emplace_back(std::string(FamilyName(static_cast<Family>(i))), database);
    }
    Handles handles;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(database, path, families, &handles, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    change(db.get(), handles);
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
  }

  void Delete(Family family, const std::string& key) {
    Damage([&](rocksdb::DB* db, const Handles& handles) {
      ASSERT_TRUE(db->Delete({}, handles[static_cast<int>(family)], key).ok());
    });
  }
  void Put(Family family, const std::string& key, const std::string& value) {
    Damage([&](rocksdb::DB* db, const Handles& handles) {
      ASSERT_TRUE(db->Put({}, handles[static_cast<int>(family)], key, value).ok());
    });
  }

  std::vector<std::string> names_;
  std::string artifact_;
};

TEST_F(StoreCheckTest, AStoreInUseIsNotCheckedAndASoundOneHasNoProblems) {
  EXPECT_TRUE(absl::IsNotFound(StoreCheck::Run(options_.data_dir).status()));
  Start();
  EXPECT_EQ(GetReason(StoreCheck::Run(options_.data_dir).status()), "STORE_IN_USE");
  coordinator_.reset();
  Fill();
  const absl::StatusOr<StoreCheck::Result> result = StoreCheck::Run(options_.data_dir);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->problem_count, 0) << absl::StrJoin(result->problems, "\n");
  EXPECT_EQ(result->jobs, 3);
  EXPECT_EQ(result->tasks, 6);
  EXPECT_EQ(result->artifacts, 2);
  EXPECT_GT(result->events, 20);
  // It is what it was: the coordinator goes on with it.
  Start();
  EXPECT_TRUE(Get(names_[0]).ok());
}

TEST_F(StoreCheckTest, NamesWhatIsMissingOrDoesNotFit) {
  Fill();
  const struct {
    Family family;
    std::string key;
    const char* problem;
  } cases[] = {
      {Family::kEvents, keys::Event(1, 7), "event 8 of"},
      {Family::kEvents, keys::Revision(9), "revision 10 comes where 9 should"},
      {Family::kJobs, keys::Report({1, 1}), "has no report"},
      {Family::kJobs, keys::LiveJob(3), "is not in the indices"},
      {Family::kJobs, keys::Task({3, 0}), "comes where task 0 should"},
      {Family::kLeases, keys::Lease({2, 0}), "RUNNING without a lease"},
      {Family::kAudit, keys::Audit(4), "audit event 5 is out of sequence"},
      {Family::kArtifacts, keys::TaskArtifact({1, 0}, "tensors.safetensors"), "is in no index"},
  };
  Put(Family::kLeases, keys::FencingToken(), keys::Number(1));
  EXPECT_THAT(Problems(), Contains(HasSubstr("the newest is 1")));
  for (const auto& each : cases) {
    Delete(each.family, each.key);
    EXPECT_THAT(Problems(), Contains(HasSubstr(each.problem)));
  }
  Put(Family::kJobs, keys::Job(2), "\xff\xff");
  EXPECT_THAT(Problems(), Contains(HasSubstr("jobs key j")));
  for (const std::string& key : {keys::Worker("workers/one"), keys::Share("red")}) {
    Put(Family::kMeta, key, "\xff\xff");
    EXPECT_THAT(Problems(), Contains(HasSubstr("default key " + key + " is unreadable")));
  }
  Put(Family::kArtifacts, keys::Upload("uploads/x"), "");
  EXPECT_THAT(Problems(), Contains(HasSubstr("an upload's record names another one")));
}

TEST_F(StoreCheckTest, ReadsEveryByteOfArtifacts) {
  Fill();
  std::ofstream(absl::StrCat(options_.data_dir, "/", artifact_), std::ios::trunc) << "bytez";
  EXPECT_THAT(Problems(), Contains(HasSubstr("has other bytes than its record says")));
  std::filesystem::remove(absl::StrCat(options_.data_dir, "/", artifact_));
  EXPECT_THAT(Problems(), Contains(HasSubstr("cannot read the file of " + artifact_)));
}

TEST_F(StoreCheckTest, FindsAFlippedBitInABlobAndInATable) {
  StoreOptions options;
  options.path = options_.data_dir + "/store";
  {
    StepStoreHarness harness;
    ASSERT_TRUE(harness.Open(options).ok());
    for (int32_t i = 0; i < 3; ++i) ASSERT_TRUE(harness.Put(MakeTestStep(1, i)).ok());
    ASSERT_TRUE(harness.steps().Compact(v1::AuditEvent()).ok());
  }
  // The harness's lease is of no job.
  const size_t before = Problems().size();
  ASSERT_TRUE(FlipBitInBlobFile(options.path, MakeTestStep(1, 1).outputs[0]));
  EXPECT_THAT(Problems(), Contains(HasSubstr("is not there whole")));
  EXPECT_EQ(Problems().size(), before + 1);
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.path)) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(10);
    const char byte = static_cast<char>(file.get() ^ 0x20);
    file.seekp(10);
    file.put(byte);
    ++tables;
  }
  ASSERT_GT(tables, 0);
  EXPECT_THAT(Problems(), Contains(HasSubstr("block checksum mismatch")));
}

}  // namespace
}  // namespace plumbline::server
