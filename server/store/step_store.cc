#include "server/store/step_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

// How often a run's last use goes to the disk.
constexpr absl::Duration kTouchInterval = absl::Minutes(1);

absl::Status NotSaved(absl::string_view run, int32_t index) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("step ", index, " of runs/", run, " is not saved")),
      "NOT_FOUND");
}

}  // namespace

StepStore::StepStore(Store* store, StepStoreOptions options)
    : store_(store),
      options_(std::move(options)),
      blobs_(store->impl_->db(), store->impl_->handle(Family::kBlobs),
             store->impl_->logged_families()) {}

absl::StatusOr<std::unique_ptr<StepStore>> StepStore::Open(Store* store, StepStoreOptions options) {
  std::unique_ptr<StepStore> steps(new StepStore(store, std::move(options)));
  PLUMBLINE_RETURN_IF_ERROR(steps->Load());
  return steps;
}

absl::Status StepStore::Load() {
  absl::MutexLock writing(&write_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    const Store::Impl& impl = *store_->impl_;
    absl::Status unreadable;
    const auto take = [&unreadable](auto record, const auto& put) {
      unreadable.Update(record.status());
      if (record.ok()) put(*record);
      return unreadable.ok();
    };
    PLUMBLINE_RETURN_IF_ERROR(impl.Visit(
        Family::kRuns, "", "", false, [&](absl::string_view key, absl::string_view value) {
          return take(Store::Impl::Parse<store::RunRecord>(value, key), [&](const auto& record) {
            mutex_.AssertHeld();
            index_.PutRun(record.run());
          });
        }));
    PLUMBLINE_RETURN_IF_ERROR(unreadable);
    PLUMBLINE_RETURN_IF_ERROR(impl.Visit(
        Family::kSteps, keys::BlobRecords(), keys::PrefixEnd(keys::BlobRecords()), false,
        [&](absl::string_view key, absl::string_view value) {
          return take(Store::Impl::Parse<store::BlobRecord>(value, key), [&](const auto& record) {
            mutex_.AssertHeld();
            index_.PutBlob(absl::StripPrefix(key, keys::BlobRecords()), record);
          });
        }));
    PLUMBLINE_RETURN_IF_ERROR(unreadable);
    PLUMBLINE_RETURN_IF_ERROR(impl.Visit(
        Family::kSteps, keys::Steps(), keys::PrefixEnd(keys::Steps()), false,
        [&](absl::string_view key, absl::string_view value) {
          return take(Store::Impl::Parse<v1::StepRecord>(value, key), [&](const auto& record) {
            mutex_.AssertHeld();
            index_.PutStep(absl::StripPrefix(record.run(), "runs/"), record);
          });
        }));
    PLUMBLINE_RETURN_IF_ERROR(unreadable);
  }
  return CollectOrphans().status();
}

absl::StatusOr<int64_t> StepStore::CollectOrphans() {
  std::vector<std::string> orphans;
  PLUMBLINE_RETURN_IF_ERROR(blobs_.Visit([&](absl::string_view sha256, int64_t) {
    absl::MutexLock lock(&mutex_);
    const store::BlobRecord record = index_.FindBlob(sha256);
    // The bytes of a quarantined blob are there again where a crash undid their deletion.
    if (record.references() == 0 || record.quarantined()) orphans.emplace_back(sha256);
  }));
  if (orphans.empty()) return 0;
  PLUMBLINE_RETURN_IF_ERROR(blobs_.Delete(orphans));
  Log(LogLevel::kInfo, "blobs without a record deleted",
      {{"blobs", static_cast<int64_t>(orphans.size())}});
  return static_cast<int64_t>(orphans.size());
}

absl::StatusOr<v1::StepRecord> StepStore::ReadRecord(absl::string_view run, int32_t index) const {
  absl::StatusOr<v1::StepRecord> record =
      store_->impl_->GetRecord<v1::StepRecord>(Family::kSteps, keys::Step(run, index));
  if (absl::IsNotFound(record.status())) return NotSaved(run, index);
  return record;
}

absl::StatusOr<StepStore::SavedStep> StepStore::ReadStep(absl::string_view run, int32_t index) {
  {
    absl::MutexLock lock(&mutex_);
    const RunIndex::Run* const found = index_.Find(run);
    if (found == nullptr || !index_.IsSaved(*found, index)) return NotSaved(run, index);
  }
  SavedStep step;
  PLUMBLINE_ASSIGN_OR_RETURN(step.record, ReadRecord(run, index));
  for (const v1::TensorDigest& output : step.record.outputs()) {
    PLUMBLINE_ASSIGN_OR_RETURN(BlobStore::Reading reading, blobs_.Read(output.sha256()));
    if (!reading.intact) {
      PLUMBLINE_ASSIGN_OR_RETURN(const bool corrupt, QuarantineIfCorrupt(output.sha256()));
      if (corrupt) return NotSaved(run, index);
      PLUMBLINE_ASSIGN_OR_RETURN(reading, blobs_.Read(output.sha256()));
      // Deleted while it was read.
      if (!reading.intact) return NotSaved(run, index);
    }
    step.outputs.push_back(std::move(reading.bytes));
  }
  Touch(run);
  return step;
}

absl::StatusOr<bool> StepStore::QuarantineIfCorrupt(const std::string& sha256) {
  absl::MutexLock writing(&write_mutex_);
  store::BlobRecord record;
  {
    absl::MutexLock lock(&mutex_);
    record = index_.FindBlob(sha256);
  }
  // Its steps are gone, or somebody else was here.
  if (record.references() == 0 || record.quarantined()) return record.quarantined();
  PLUMBLINE_ASSIGN_OR_RETURN(const BlobStore::Reading reading, blobs_.Read(sha256));
  if (reading.intact) return false;
  Log(LogLevel::kError, "blob is corrupt and quarantined",
      {{"sha256", sha256},
       {"found", reading.found_sha256.empty() ? "unreadable" : reading.found_sha256}});
  record.set_quarantined(true);
  WriteSet set;
  set.PutBlobRecord(sha256, record);
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  {
    absl::MutexLock lock(&mutex_);
    index_.PutBlob(sha256, record);
  }
  CrashPoint(CrashPlace::kStoreBlobQuarantined);
  // So that nothing, compaction above all, reads it again.
  PLUMBLINE_RETURN_IF_ERROR(blobs_.Delete({sha256}));
  return true;
}

void StepStore::Touch(absl::string_view run) {
  // A change that is going on notes the use itself, or another read will.
  if (!write_mutex_.TryLock()) return;
  const absl::Time now = options_.clock->Now();
  store::RunRecord record;
  {
    absl::MutexLock lock(&mutex_);
    const RunIndex::Run* const found = index_.Find(run);
    if (found != nullptr && now - FromTimestamp(found->record.last_use_time()) >= kTouchInterval) {
      *record.mutable_run() = found->record;
      *record.mutable_run()->mutable_last_use_time() = ToTimestamp(now);
      index_.PutRun(record.run());
    }
  }
  if (record.has_run()) {
    WriteSet set;
    set.PutRun(record);
    store_->Commit(&set, nullptr).IgnoreError();  // A lost note costs nothing.
  }
  write_mutex_.Unlock();
}

absl::StatusOr<v1::Run> StepStore::GetRun(absl::string_view prefix) const {
  std::string id;
  v1::Run run;
  std::vector<std::pair<int32_t, bool>> steps;  // And whether they are quarantined.
  {
    absl::MutexLock lock(&mutex_);
    PLUMBLINE_ASSIGN_OR_RETURN(id, index_.Resolve(prefix, "name"));
    const RunIndex::Run& found = *index_.Find(id);
    run = index_.Describe(found);
    for (const auto& [index, step] : found.steps) {
      steps.emplace_back(index, index_.IsQuarantined(step));
    }
  }
  for (const auto& [index, quarantined] : steps) {
    absl::StatusOr<v1::StepRecord> record = ReadRecord(id, index);
    if (absl::IsNotFound(record.status())) continue;  // Deleted meanwhile.
    if (!record.ok()) return record.status();
    record->set_quarantined(quarantined);
    *run.add_steps() = *std::move(record);
  }
  for (std::string& job : JobsNeeding(run)) run.add_jobs(std::move(job));
  return run;
}

std::vector<v1::Run> StepStore::ListRuns() const {
  std::vector<v1::Run> runs;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, run] : index_.runs()) runs.push_back(index_.Describe(run));
  }
  std::sort(runs.begin(), runs.end(), [](const v1::Run& a, const v1::Run& b) {
    const absl::Time a_time = FromTimestamp(a.last_use_time());
    const absl::Time b_time = FromTimestamp(b.last_use_time());
    return a_time != b_time ? a_time > b_time : a.name() < b.name();
  });
  return runs;
}

int64_t StepStore::size_bytes() const {
  absl::MutexLock lock(&mutex_);
  return index_.size_bytes();
}

std::vector<std::string> StepStore::JobsNeeding(const v1::Run& run) const {
  return options_.jobs_needing ? options_.jobs_needing(run) : std::vector<std::string>();
}

absl::StatusOr<std::vector<std::string>> StepStore::FindInconsistencies() const {
  absl::flat_hash_map<std::string, int64_t> stored;
  PLUMBLINE_RETURN_IF_ERROR(blobs_.Visit(
      [&stored](absl::string_view sha256, int64_t size_bytes) { stored[sha256] = size_bytes; }));
  std::vector<std::string> problems;
  absl::MutexLock lock(&mutex_);
  absl::flat_hash_map<std::string, int32_t> references;
  for (const auto& [id, run] : index_.runs()) {
    for (const auto& [index, step] : run.steps) {
      for (const std::string& sha256 : step.outputs) ++references[sha256];
      if (!store_->impl_->Get(Family::kSteps, keys::Step(id, index)).ok()) {
        problems.push_back(absl::StrCat("step ", index, " of runs/", id, " has no record"));
      }
    }
  }
  for (const auto& [sha256, record] : index_.blobs()) {
    if (references[sha256] != record.references()) {
      problems.push_back(absl::StrCat("blob ", sha256, " has ", record.references(),
                                      " references on record and ", references[sha256],
                                      " in fact"));
    }
    const auto blob = stored.find(sha256);
    if (record.quarantined()) continue;
    if (blob == stored.end() || blob->second != record.size_bytes()) {
      problems.push_back(absl::StrCat("blob ", sha256, " is not there whole"));
    }
  }
  for (const auto& [sha256, count] : references) {
    if (index_.FindBlob(sha256).references() == 0 && count > 0) {
      problems.push_back(absl::StrCat("blob ", sha256, " has no record"));
    }
  }
  return problems;
}

}  // namespace plumbline::server
