// What becomes of whole runs: verified, adopted, deleted.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/status.h"
#include "common/step_digest.h"
#include "rocksdb/db.h"
#include "server/proto_util.h"
#include "server/store/run_identity.h"
#include "server/store/step_store.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

absl::Status Refusal(absl::string_view reason, const std::string& message) {
  return WithReason(absl::FailedPreconditionError(message), reason);
}

std::string IdOf(const v1::Run& run) { return std::string(absl::StripPrefix(run.name(), "runs/")); }

}  // namespace

absl::StatusOr<v1::VerifyRunResponse> StepStore::VerifyRun(
    absl::string_view run, const std::function<bool()>& is_cancelled) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run found, GetRun(run));
  v1::VerifyRunResponse response;
  for (const v1::StepRecord& step : found.steps()) {
    if (is_cancelled && is_cancelled()) return absl::CancelledError("the caller has left");
    bool is_checked = !step.quarantined();
    for (const v1::TensorDigest& output : step.outputs()) {
      PLUMBLINE_ASSIGN_OR_RETURN(const BlobStore::Reading reading, blobs_.Read(output.sha256()));
      if (reading.intact) {
        response.set_bytes_checked(response.bytes_checked() + output.size_bytes());
        continue;
      }
      PLUMBLINE_ASSIGN_OR_RETURN(const bool corrupt, QuarantineIfCorrupt(output.sha256()));
      if (!corrupt) {  // It was deleted, or another step wrote it anew.
        is_checked = false;
        continue;
      }
      auto& corruption = *response.add_corruptions();
      corruption.set_step(step.index());
      corruption.set_tensor(output.name());
      corruption.set_expected_sha256(output.sha256());
      corruption.set_found_sha256(reading.found_sha256);
    }
    if (is_checked) response.set_steps_checked(response.steps_checked() + 1);
  }
  return response;
}

absl::Status StepStore::CheckUnused(const v1::Run& run) const {
  const std::vector<std::string> jobs = JobsNeeding(run);
  if (jobs.empty()) return absl::OkStatus();
  return Refusal("RUN_IN_USE", absl::StrCat(run.name(), " is needed by ", absl::StrJoin(jobs, ", "),
                                            "; it can go when that has finished"));
}

absl::Status StepStore::AdoptRun(absl::string_view run, absl::string_view from,
                                 v1::AuditEvent audit) {
  absl::MutexLock writing(&write_mutex_);
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Run target, GetRun(run));
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run source, GetRun(from));
  if (source.name() == target.name()) {
    return FieldError("from", "is the run itself",
                      "the identity that the steps are recorded under");
  }
  if (!target.steps().empty()) {
    return Refusal("RUN_HAS_STEPS",
                   absl::StrCat(target.name(), " has ", target.steps_size(), " steps of its own"));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckSameParts(source.identity().parts(), target.identity().parts(),
                                           source.name(), "IDENTITY_DIFFERS"));
  if (source.seed() != target.seed() || source.total_steps() != target.total_steps()) {
    return Refusal("IDENTITY_DIFFERS",
                   absl::StrCat(source.name(), " has seed ", source.seed(), " and ",
                                source.total_steps(), " steps, ", target.name(), " seed ",
                                target.seed(), " and ", target.total_steps()));
  }
  if (source.state() == v1::RUN_STATE_BROKEN) {
    return Refusal("RUN_BROKEN", absl::StrCat(source.name(), " is broken: ", source.problem()));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckUnused(source));

  store::RunRecord record;
  {
    absl::MutexLock lock(&mutex_);
    *record.mutable_run() = index_.Find(IdOf(target))->record;
  }
  record.mutable_run()->set_adopted_from(IdOf(source));
  record.mutable_run()->set_preflight(source.preflight());
  *record.mutable_run()->mutable_create_time() = source.create_time();
  *record.mutable_run()->mutable_last_use_time() = ToTimestamp(options_.clock->Now());
  WriteSet set;
  set.PutRun(record);
  set.DeleteRun(IdOf(source));
  std::vector<v1::StepRecord> moved;
  for (const v1::StepRecord& step : source.steps()) {
    set.DeleteStep(IdOf(source), step.index());
    v1::StepRecord& adopted = moved.emplace_back(step);
    adopted.set_run(target.name());
    adopted.set_input_digest(StepInputDigest(IdOf(target), step.index(), step.inputs()));
    adopted.clear_quarantined();
    set.PutStep(IdOf(target), adopted);
  }
  set.AppendAudit(std::move(audit));
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  absl::MutexLock lock(&mutex_);
  index_.DeleteRun(IdOf(source));
  index_.PutRun(record.run());
  for (const v1::StepRecord& step : moved) index_.PutStep(IdOf(target), step);
  return absl::OkStatus();
}

absl::Status StepStore::DeleteRun(absl::string_view run, v1::AuditEvent audit) {
  {
    absl::MutexLock writing(&write_mutex_);
    PLUMBLINE_RETURN_IF_ERROR(DeleteRunLocked(std::string(run), std::move(audit)));
  }
  return blobs_.Reclaim();
}

absl::Status StepStore::DeleteRunLocked(const std::string& id,
                                        std::optional<v1::AuditEvent> audit) {
  v1::Run run;
  std::map<int32_t, RunIndex::Step> steps;
  {
    absl::MutexLock lock(&mutex_);
    PLUMBLINE_RETURN_IF_ERROR(index_.Resolve(id, "name").status());
    run = index_.Describe(*index_.Find(id));
    steps = index_.Find(id)->steps;
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckUnused(run));
  BlobChanges changes;
  WriteSet set;
  set.DeleteRun(id);
  for (const auto& [index, step] : steps) {
    set.DeleteStep(id, index);
    Count(step, -1, &changes);
  }
  std::vector<std::string> unreferenced;
  for (const auto& [sha256, record] : changes) {
    set.PutBlobRecord(sha256, record);
    if (record.references() == 0) unreferenced.push_back(sha256);
  }
  if (audit.has_value()) set.AppendAudit(*std::move(audit));
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  {
    absl::MutexLock lock(&mutex_);
    index_.DeleteRun(id);
    for (const auto& [sha256, record] : changes) index_.PutBlob(sha256, record);
  }
  CrashPoint(CrashPlace::kStoreRunDeleted);
  return unreferenced.empty() ? absl::OkStatus() : blobs_.Delete(unreferenced);
}

absl::StatusOr<std::vector<std::string>> StepStore::EnforceBudget() {
  std::vector<std::string> deleted;
  if (options_.budget_bytes <= 0) return deleted;
  {
    absl::MutexLock writing(&write_mutex_);
    if (size_bytes() <= options_.budget_bytes) return deleted;
    std::vector<v1::Run> runs = ListRuns();
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (size_bytes() <= options_.budget_bytes) break;
      if (!JobsNeeding(*run).empty()) continue;
      PLUMBLINE_RETURN_IF_ERROR(DeleteRunLocked(IdOf(*run), std::nullopt));
      Log(LogLevel::kInfo, "run deleted for want of room",
          {{"run", run->name()}, {"bytes", run->size_bytes()}});
      deleted.push_back(IdOf(*run));
    }
  }
  if (!deleted.empty()) PLUMBLINE_RETURN_IF_ERROR(blobs_.Reclaim());
  return deleted;
}

absl::StatusOr<v1::CompactResponse> StepStore::Compact(v1::AuditEvent audit) {
  v1::CompactResponse response;
  const auto size = [this] {
    uint64_t total = 0;
    for (int i = 0; i < kFamilyCount; ++i) {
      for (const char* const property :
           {"rocksdb.total-sst-files-size", "rocksdb.total-blob-file-size"}) {
        uint64_t bytes = 0;
        store_->impl_->db()->GetIntProperty(store_->impl_->handle(static_cast<Family>(i)), property,
                                            &bytes);
        total += bytes;
      }
    }
    return static_cast<int64_t>(total);
  };
  // RocksDB must not flush what has failed.
  PLUMBLINE_RETURN_IF_ERROR(store_->Health());
  response.set_size_before_bytes(size());
  {
    absl::MutexLock writing(&write_mutex_);
    PLUMBLINE_ASSIGN_OR_RETURN(const int64_t orphans, CollectOrphans());
    response.set_orphaned_blobs_deleted(orphans);
  }
  PLUMBLINE_RETURN_IF_ERROR(blobs_.Reclaim());
  for (rocksdb::ColumnFamilyHandle* const family : store_->impl_->logged_families()) {
    PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(
        store_->impl_->db()->CompactRange(rocksdb::CompactRangeOptions(), family, nullptr, nullptr),
        "compact the store"));
  }
  response.set_size_after_bytes(size());
  WriteSet set;
  set.AppendAudit(std::move(audit));
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  return response;
}

}  // namespace plumbline::server
