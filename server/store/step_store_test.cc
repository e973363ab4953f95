#include "server/store/step_store.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock_fake.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/step_digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/run_name.h"
#include "server/store/testing/step_store_harness.h"

namespace plumbline::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StepStoreTest : public testing::Test {
 protected:
  StepStoreTest() {
    store_options_.path =
        absl::StrCat(testing::TempDir(), "/step-store-",
                     testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(store_options_.path);
    store_options_.clock = &clock_;
    options_.clock = &clock_;
    options_.jobs_needing = [this](const v1::Run& run) {
      return run.name() == needed_ ? std::vector<std::string>{"jobs/needs-it"}
                                   : std::vector<std::string>();
    };
    Open();
  }

  void Open() {
    const absl::Status status = harness_.Open(store_options_, options_);
    ASSERT_TRUE(status.ok()) << status;
  }

  void Put(uint64_t seed, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      const absl::StatusOr<v1::PutStepResponse> put = harness_.Put(MakeTestStep(seed, i));
      ASSERT_TRUE(put.ok()) << put.status();
      EXPECT_FALSE(put->already_stored());
    }
  }

  void ExpectStored(const TestStep& step) {
    absl::StatusOr<StepStore::SavedStep> read =
        steps().ReadStep(step.header.identity().sha256(), step.header.record().index());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->outputs, step.outputs);
    EXPECT_EQ(read->record.input_digest(), step.header.record().input_digest());
    EXPECT_EQ(read->record.trace().groups(0).requested(), "golden");
  }

  bool IsSaved(uint64_t seed, int32_t index) { return steps().ReadStep(RunIdOf(seed), index).ok(); }

  void ExpectConsistent() {
    const absl::StatusOr<std::vector<std::string>> problems = steps().FindInconsistencies();
    ASSERT_TRUE(problems.ok()) << problems.status();
    EXPECT_THAT(*problems, IsEmpty());
  }

  StepStore& steps() { return harness_.steps(); }

  FakeClock clock_;
  StoreOptions store_options_;
  StepStoreOptions options_;
  std::string needed_;
  StepStoreHarness harness_;
};

TEST_F(StepStoreTest, KeepsStepsOverAReopening) {
  Put(42, 3);
  for (int round = 0; round < 2; ++round) {
    for (int32_t i = 0; i < 3; ++i) ExpectStored(MakeTestStep(42, i));
    EXPECT_FALSE(IsSaved(42, 3));
    const absl::StatusOr<v1::Run> run = steps().GetRun(RunIdOf(42).substr(0, 8));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->name(), "runs/" + RunIdOf(42));
    EXPECT_EQ(run->identity().parts(0).name(), "kernel");
    EXPECT_EQ(run->state(), v1::RUN_STATE_ACTIVE);
    EXPECT_EQ(run->seed(), 42u);
    EXPECT_EQ(run->saved_steps(), 3);
    EXPECT_EQ(run->total_steps(), 8);
    EXPECT_EQ(run->size_bytes(), 3 * 25000);
    ASSERT_EQ(run->steps_size(), 3);
    EXPECT_EQ(run->steps(1).index(), 1);
    EXPECT_EQ(run->steps(1).worker(), "workers/one");
    EXPECT_EQ(run->steps(1).outputs(0).sha256(), Sha256Hex(MakeTestStep(42, 1).outputs[0]));
    EXPECT_EQ(steps().size_bytes(), 3 * 25000);
    ExpectConsistent();
    Open();
  }
}

TEST_F(StepStoreTest, ARunIsFinishedWhenAllItsStepsAreSaved) {
  Put(42, 8);
  EXPECT_EQ(steps().GetRun(RunIdOf(42))->state(), v1::RUN_STATE_FINISHED);
}

TEST_F(StepStoreTest, TakesTheSameStepOnce) {
  Put(42, 1);
  const absl::StatusOr<v1::PutStepResponse> again = harness_.Put(MakeTestStep(42, 0));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->already_stored());
  EXPECT_EQ(steps().size_bytes(), 25000);
  ExpectConsistent();
}

TEST_F(StepStoreTest, RefusesOtherBytesForTheSameInputs) {
  Put(42, 1);
  TestStep other = MakeTestStep(42, 0);
  other.outputs[1] = std::string(other.outputs[1].size(), 'x');
  other.header.mutable_record()->mutable_outputs(1)->set_sha256(Sha256Hex(other.outputs[1]));
  const absl::Status status = harness_.Put(other).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(GetReason(status), "STEP_DIFFERS");
  EXPECT_THAT(std::string(status.message()), HasSubstr("velocity.audio"));
  ExpectStored(MakeTestStep(42, 0));
  ExpectConsistent();
}

TEST_F(StepStoreTest, RefusesOtherInputsNamingStepAndTensor) {
  Put(42, 2);
  TestStep other = MakeTestStep(42, 1);
  v1::StepRecord& record = *other.header.mutable_record();
  record.mutable_inputs(1)->set_sha256(Sha256Hex("another latent"));
  record.set_input_digest(StepInputDigest(RunIdOf(42), 1, record.inputs()));
  const absl::Status status = harness_.Put(other).status();
  EXPECT_EQ(GetReason(status), "STEP_INCONSISTENT") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rows"));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("audio")));
  // The stored run is none the worse.
  EXPECT_TRUE(harness_.Put(MakeTestStep(42, 2)).ok());
}

TEST_F(StepStoreTest, RefusesARunThatIsNotWhatItsNameSays) {
  Put(42, 1);
  TestStep other = MakeTestStep(42, 1);
  other.header.mutable_identity()->mutable_parts(0)->set_value("another");
  absl::Status status = harness_.Put(other).status();
  EXPECT_EQ(GetReason(status), "RUN_DIFFERS") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel"));
  other = MakeTestStep(42, 1);
  other.header.set_total_steps(9);
  status = harness_.Put(other).status();
  EXPECT_EQ(GetReason(status), "RUN_DIFFERS") << status;
}

TEST_F(StepStoreTest, RefusesAStaleTokenAndKeepsNothingOfIt) {
  Put(42, 1);
  const int64_t stale = harness_.token();
  ASSERT_TRUE(harness_.Grant().ok());
  const absl::Status status = harness_.Put(MakeTestStep(42, 1), stale).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(GetReason(status), kLeaseLostReason);
  EXPECT_FALSE(IsSaved(42, 1));
  EXPECT_EQ(steps().size_bytes(), 25000);
  ASSERT_TRUE(harness_.Put(MakeTestStep(42, 1)).ok());
  ExpectConsistent();
}

TEST_F(StepStoreTest, RefusesBytesThatAreNotWhatTheRecordSays) {
  TestStep step = MakeTestStep(42, 0);
  step.outputs[0][100] ^= 1;
  const absl::Status status = harness_.Put(step).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(GetReason(status), "DIGEST_MISMATCH");
  EXPECT_THAT(std::string(status.message()), HasSubstr("velocity.video"));
  EXPECT_FALSE(IsSaved(42, 0));
  ExpectConsistent();
  // The right bytes are taken afterwards.
  ASSERT_TRUE(harness_.Put(MakeTestStep(42, 0)).ok());
  ExpectStored(MakeTestStep(42, 0));
}

TEST_F(StepStoreTest, SharesEqualBlobsAndCountsWhoNeedsThem) {
  // The same latents under another kernel: other runs, equal bytes.
  ASSERT_TRUE(harness_.Put(MakeTestStep(42, 0, "a")).ok());
  ASSERT_TRUE(harness_.Put(MakeTestStep(42, 0, "b")).ok());
  EXPECT_EQ(steps().size_bytes(), 25000);
  ASSERT_TRUE(steps().DeleteRun(RunIdOf(42, "a"), v1::AuditEvent()).ok());
  ExpectStored(MakeTestStep(42, 0, "b"));
  ExpectConsistent();
  ASSERT_TRUE(steps().DeleteRun(RunIdOf(42, "b"), v1::AuditEvent()).ok());
  EXPECT_EQ(steps().size_bytes(), 0);
  ExpectConsistent();
}

TEST_F(StepStoreTest, AFlippedBitIsFoundQuarantinedAndStoredAnew) {
  Put(42, 3);
  ASSERT_TRUE(FlipBitInBlobFile(store_options_.path, MakeTestStep(42, 1).outputs[0]));
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(IsSaved(42, 1));
    const absl::StatusOr<v1::Run> run = steps().GetRun(RunIdOf(42));
    EXPECT_EQ(run->saved_steps(), 2);
    EXPECT_FALSE(run->steps(0).quarantined());
    EXPECT_TRUE(run->steps(1).quarantined());
    ExpectConsistent();
    Open();  // It stays so.
  }
  TestStep again = MakeTestStep(42, 1);
  again.header.mutable_record()->set_attempt(2);
  const absl::StatusOr<v1::PutStepResponse> put = harness_.Put(again);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->already_stored());
  EXPECT_EQ(put->record().attempt(), 2);
  for (int round = 0; round < 2; ++round) {
    for (int32_t i = 0; i < 3; ++i) ExpectStored(MakeTestStep(42, i));
    EXPECT_EQ(steps().GetRun(RunIdOf(42))->saved_steps(), 3);
    ExpectConsistent();
    Open();
  }
}

TEST_F(StepStoreTest, AQuarantinedStepWithOtherInputsBreaksTheRun) {
  Put(42, 3);
  ASSERT_TRUE(FlipBitInBlobFile(store_options_.path, MakeTestStep(42, 1).outputs[0]));
  ASSERT_FALSE(IsSaved(42, 1));
  TestStep other = MakeTestStep(42, 1);
  v1::StepRecord& record = *other.header.mutable_record();
  record.mutable_inputs(0)->set_sha256(Sha256Hex("another latent"));
  record.set_input_digest(StepInputDigest(RunIdOf(42), 1, record.inputs()));
  EXPECT_EQ(GetReason(harness_.Put(other).status()), "STEP_INCONSISTENT");
  Open();
  const absl::StatusOr<v1::Run> run = steps().GetRun(RunIdOf(42));
  EXPECT_EQ(run->state(), v1::RUN_STATE_BROKEN);
  EXPECT_THAT(run->problem(), HasSubstr("audio"));
  EXPECT_EQ(GetReason(harness_.Put(MakeTestStep(42, 1)).status()), "RUN_BROKEN");
  // Without it the run can be made anew.
  ASSERT_TRUE(steps().DeleteRun(RunIdOf(42), v1::AuditEvent()).ok());
  EXPECT_TRUE(harness_.Put(MakeTestStep(42, 0)).ok());
}

TEST_F(StepStoreTest, VerifyReadsEverythingAndNamesWhatIsCorrupt) {
  Put(42, 3);
  absl::StatusOr<v1::VerifyRunResponse> verified = steps().VerifyRun(RunIdOf(42));
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->steps_checked(), 3);
  EXPECT_EQ(verified->bytes_checked(), 3 * 25000);
  EXPECT_TRUE(verified->corruptions().empty());
  ASSERT_TRUE(FlipBitInBlobFile(store_options_.path, MakeTestStep(42, 2).outputs[1]));
  verified = steps().VerifyRun(RunIdOf(42));
  ASSERT_EQ(verified->corruptions_size(), 1);
  EXPECT_EQ(verified->corruptions(0).step(), 2);
  EXPECT_EQ(verified->corruptions(0).tensor(), "velocity.audio");
  EXPECT_EQ(verified->corruptions(0).expected_sha256(), Sha256Hex(MakeTestStep(42, 2).outputs[1]));
  EXPECT_FALSE(IsSaved(42, 2));
}

TEST_F(StepStoreTest, CompactionDoesNotStumbleOverACorruptBlob) {
  Put(42, 8);
  ASSERT_TRUE(FlipBitInBlobFile(store_options_.path, MakeTestStep(42, 5).outputs[0]));
  EXPECT_TRUE(steps().Compact(v1::AuditEvent()).ok());
  EXPECT_FALSE(IsSaved(42, 5));
  EXPECT_TRUE(steps().Compact(v1::AuditEvent()).ok());
  EXPECT_TRUE(harness_.store().Health().ok());
  EXPECT_TRUE(harness_.Put(MakeTestStep(42, 5)).ok());
}

TEST_F(StepStoreTest, AdoptsARunWhosePartsAreAllEqual) {
  Put(42, 3);
  TestStep target = MakeTestStep(42, 0);
  *target.header.mutable_identity() = MakeIdentity({"kernel=k", "seed=42"}, "another digest");
  const std::string id = target.header.identity().sha256();
  EXPECT_TRUE(absl::IsNotFound(steps().AdoptRun(id, RunIdOf(42), v1::AuditEvent())));
  ASSERT_TRUE(harness_.PutRun(target).ok());
  needed_ = "runs/" + RunIdOf(42);
  EXPECT_EQ(GetReason(steps().AdoptRun(id, RunIdOf(42), v1::AuditEvent())), "RUN_IN_USE");
  needed_.clear();
  const absl::Status adopted = steps().AdoptRun(id, RunIdOf(42), v1::AuditEvent());
  ASSERT_TRUE(adopted.ok()) << adopted;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(absl::IsNotFound(steps().GetRun(RunIdOf(42)).status()));
    const absl::StatusOr<v1::Run> run = steps().GetRun(id);
    EXPECT_EQ(run->adopted_from(), RunIdOf(42));
    EXPECT_EQ(run->saved_steps(), 3);
    EXPECT_EQ(run->steps(1).run(), "runs/" + id);
    // As the worker makes it under the identity that it has now.
    EXPECT_EQ(run->steps(1).input_digest(), StepInputDigest(id, 1, run->steps(1).inputs()));
    EXPECT_EQ(steps().ReadStep(id, 2)->outputs, MakeTestStep(42, 2).outputs);
    ExpectConsistent();
    Open();
  }
}

TEST_F(StepStoreTest, RefusesToAdoptWhenOnePartDiffersAndChangesNothing) {
  Put(42, 3);
  TestStep target = MakeTestStep(42, 0);
  for (const std::vector<std::string>& parts :
       {std::vector<std::string>{"kernel=other", "seed=42"},
        std::vector<std::string>{"kernel=k", "library.openblas=0.3.21", "seed=42"},
        std::vector<std::string>{"seed=42"}}) {
    *target.header.mutable_identity() = MakeIdentity(parts);
    ASSERT_TRUE(harness_.PutRun(target).ok());
    const std::string id = target.header.identity().sha256();
    const absl::Status status = steps().AdoptRun(id, RunIdOf(42), v1::AuditEvent());
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(GetReason(status), "IDENTITY_DIFFERS");
    const std::vector<Precondition> preconditions = GetPreconditions(status);
    ASSERT_EQ(preconditions.size(), 1u);
    EXPECT_EQ(preconditions[0].subject,
              absl::StrCat("runs/", RunIdOf(42), ": ",
                           parts.size() == 3 ? "library.openblas" : "kernel"));
    EXPECT_EQ(steps().GetRun(id)->steps_size(), 0);
    EXPECT_EQ(steps().GetRun(id)->adopted_from(), "");
  }
  for (int32_t i = 0; i < 3; ++i) ExpectStored(MakeTestStep(42, i));
  ExpectConsistent();
}

TEST_F(StepStoreTest, RefusesToAdoptIntoARunWithSteps) {
  Put(42, 2);
  TestStep target = MakeTestStep(42, 0);
  *target.header.mutable_identity() = MakeIdentity({"kernel=k", "seed=42"}, "another digest");
  ASSERT_TRUE(harness_.Put(target).ok());
  EXPECT_EQ(
      GetReason(steps().AdoptRun(target.header.identity().sha256(), RunIdOf(42), v1::AuditEvent())),
      "RUN_HAS_STEPS");
}

TEST_F(StepStoreTest, DeletesNothingThatALiveJobNeeds) {
  Put(42, 1);
  needed_ = "runs/" + RunIdOf(42);
  const absl::Status status = steps().DeleteRun(RunIdOf(42), v1::AuditEvent());
  EXPECT_EQ(GetReason(status), "RUN_IN_USE") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("jobs/needs-it"));
  EXPECT_THAT(steps().GetRun(RunIdOf(42))->jobs(), ElementsAre("jobs/needs-it"));
  ExpectStored(MakeTestStep(42, 0));
  needed_.clear();
  EXPECT_TRUE(steps().DeleteRun(RunIdOf(42), v1::AuditEvent()).ok());
  EXPECT_FALSE(IsSaved(42, 0));
  EXPECT_TRUE(absl::IsNotFound(steps().DeleteRun(RunIdOf(42), v1::AuditEvent())));
}

TEST_F(StepStoreTest, TheBudgetTakesWhatWasUsedLongestAgo) {
  options_.budget_bytes = 5 * 25000;
  Open();
  for (const uint64_t seed : {1, 2, 3}) {
    Put(seed, 2);
    clock_.Advance(absl::Minutes(5));
  }
  // Reading is using.
  ASSERT_TRUE(IsSaved(1, 0));
  needed_ = "runs/" + RunIdOf(2);
  absl::StatusOr<std::vector<std::string>> deleted = steps().EnforceBudget();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(*deleted, ElementsAre(RunIdOf(3)));
  EXPECT_THAT(*steps().EnforceBudget(), IsEmpty());
  Put(4, 2);
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(*steps().EnforceBudget(), ElementsAre(RunIdOf(1)));
  EXPECT_TRUE(IsSaved(2, 1));
  EXPECT_TRUE(IsSaved(4, 1));
  ExpectConsistent();
  std::vector<std::string> names;
  for (const v1::Run& run : steps().ListRuns()) names.push_back(run.name());
  EXPECT_EQ(names.size(), 2u);
}

TEST_F(StepStoreTest, ListsRunsLastUsedFirst) {
  for (const uint64_t seed : {1, 2, 3}) {
    Put(seed, 1);
    clock_.Advance(absl::Minutes(5));
  }
  ASSERT_TRUE(IsSaved(2, 0));
  Open();
  std::vector<uint64_t> seeds;
  for (const v1::Run& run : steps().ListRuns()) seeds.push_back(run.seed());
  EXPECT_THAT(seeds, ElementsAre(2u, 3u, 1u));
}

TEST_F(StepStoreTest, GivesTheDiskBack) {
  for (int32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(harness_.Put(MakeTestStep(1, i, "k", 1 << 20)).ok());
    ASSERT_TRUE(harness_.Put(MakeTestStep(2, i, "k", 1 << 20)).ok());
  }
  ASSERT_TRUE(steps().DeleteRun(RunIdOf(1), v1::AuditEvent()).ok());
  const absl::StatusOr<v1::CompactResponse> compacted = steps().Compact(v1::AuditEvent());
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_EQ(compacted->orphaned_blobs_deleted(), 0);
  EXPECT_LT(compacted->size_after_bytes(), 9 << 20);
  EXPECT_GT(compacted->size_after_bytes(), 8 << 20);
  for (int32_t i = 0; i < 8; ++i) ExpectStored(MakeTestStep(2, i, "k", 1 << 20));
}

TEST_F(StepStoreTest, GetRunWantsAnUnambiguousPrefix) {
  Put(42, 1);
  EXPECT_TRUE(absl::IsNotFound(steps().GetRun(std::string(64, '0')).status()));
  EXPECT_TRUE(ParseRunName("runs/0123abcd", "name", /*allow_prefix=*/true).ok());
  for (const char* const bad : {"runs/0123abc", "runs/0123abcX", "0123abcd", "runs/", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRunName(bad, "name", true).status())) << bad;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseRunName("runs/0123abcd", "name").status()));
}

}  // namespace
}  // namespace plumbline::server
