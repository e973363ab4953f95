#ifndef PLUMBLINE_SERVER_STORE_STEP_STORE_H_
#define PLUMBLINE_SERVER_STORE_STEP_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "server/store/blob_store.h"
#include "server/store/run_index.h"
#include "server/store/step_upload.h"
#include "server/store/store.h"

namespace plumbline::server {

struct StepStoreOptions {
  Clock* clock = SystemClock();
  // Bytes of blobs above which the runs used longest ago go. 0: no limit.
  int64_t budget_bytes = 0;
  // Names of the live jobs that need a run. Called without locks that others wait for; empty:
  // none. Must stay callable as long as the store is.
  std::function<std::vector<std::string>(const v1::Run&)> jobs_needing;
  // Called with the duration of every step's write and its bytes. May be empty.
  std::function<void(absl::Duration, int64_t)> on_step_written;
};

// A step to store. The header was checked and has worker and attempt in its record.
struct NewStep {
  TaskKey task;
  int64_t fencing_token = 0;
  v1::PutStepRequest::Header header;
  // What the task makes, for a run that is not there yet.
  v1::GenerationSpec generation;
  std::string checkpoint;
  // All its bytes; their digests are checked while they are written.
  const StepUpload* upload = nullptr;
};

// Saved steps of generations, and the runs they belong to. Bytes first, without the log, then one
// synced record that refers to them, then the answer: a step that was acknowledged is there
// whatever happens, and one that was not is there whole or not at all.
//
// Any thread may call; calls block on the disk. Changes are made one after the other; reads wait
// for none. Runs are named by their ID, the identity's SHA-256.
class StepStore {
 public:
  // Collects what a crash left without a record. `store` must outlive it.
  static absl::StatusOr<std::unique_ptr<StepStore>> Open(Store* store, StepStoreOptions options);
  StepStore(const StepStore&) = delete;
  StepStore& operator=(const StepStore&) = delete;

  // Makes the run of the header, without a step, if it is not there yet. Errors as PutStep's.
  absl::Status PutRun(const NewStep& step, v1::AuditEvent audit);

  // Returns when the step is durable. ABORTED (LEASE_LOST) under a token that is not the newest;
  // FAILED_PRECONDITION where what the header says of the run is not what is stored
  // (RUN_DIFFERS), where the run is broken (RUN_BROKEN) or where the step is stored with other
  // inputs (STEP_INCONSISTENT, naming step and tensor); DATA_LOSS (STEP_DIFFERS) where it is stored
  // with the same inputs and other outputs, and StepUpload::CheckDigests' errors. A quarantined
  // step whose inputs match is stored anew; if they do not, the run is broken from then on.
  absl::StatusOr<v1::PutStepResponse> PutStep(const NewStep& step, v1::AuditEvent audit);

  struct SavedStep {
    v1::StepRecord record;
    std::vector<std::string> outputs;
  };
  // NOT_FOUND if it is not saved, or no longer: bytes that fail their digest are quarantined here.
  absl::StatusOr<SavedStep> ReadStep(absl::string_view run, int32_t index);

  // By a prefix of its ID; with the records of its steps. NOT_FOUND.
  absl::StatusOr<v1::Run> GetRun(absl::string_view prefix) const;
  // Without steps, last used first.
  std::vector<v1::Run> ListRuns() const;
  int64_t size_bytes() const;
  int64_t budget_bytes() const { return options_.budget_bytes; }

  // Reads every blob of the run; corrupt ones are quarantined. NOT_FOUND.
  // CANCELLED as soon as `is_cancelled` says so; empty: it never does.
  absl::StatusOr<v1::VerifyRunResponse> VerifyRun(absl::string_view run,
                                                  const std::function<bool()>& is_cancelled = {});

  // Moves the steps recorded under `from` to `run`, which is recorded and has none. NOT_FOUND;
  // FAILED_PRECONDITION: IDENTITY_DIFFERS, a precondition for each part that does; RUN_HAS_STEPS;
  // RUN_IN_USE where a live job needs `from`.
  absl::Status AdoptRun(absl::string_view run, absl::string_view from, v1::AuditEvent audit);

  // NOT_FOUND; FAILED_PRECONDITION (RUN_IN_USE) while a live job needs it.
  absl::Status DeleteRun(absl::string_view run, v1::AuditEvent audit);

  // Deletes the runs used longest ago that no live job needs until the budget holds. Their IDs.
  absl::StatusOr<std::vector<std::string>> EnforceBudget();

  // Deletes blobs that no record refers to, and compacts the whole store.
  absl::StatusOr<v1::CompactResponse> Compact(v1::AuditEvent audit);

  // Between the two no step is written, not even in part: for whoever takes the store's files as
  // they are, where a record must not be without its blobs, which are not in the log. The first
  // returns when none is being written.
  void PauseWrites() ABSL_LOCKS_EXCLUDED(write_mutex_);
  void ResumeWrites() ABSL_LOCKS_EXCLUDED(write_mutex_);

  // What is wrong between records, reference counts and blobs, a sentence each. Reads no bytes.
  absl::StatusOr<std::vector<std::string>> FindInconsistencies() const;

 private:
  // Changes of reference counts, by digest.
  using BlobChanges = std::map<std::string, store::BlobRecord>;

  StepStore(Store* store, StepStoreOptions options);

  absl::Status Load() ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  absl::StatusOr<int64_t> CollectOrphans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  bool MayWrite() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) { return !paused_; }

  // Of a change (step_store_put.cc). All hold write_mutex_, so that what they read stays.
  absl::StatusOr<v1::Run> RunToWrite(const NewStep& step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Break(const NewStep& step, v1::Run run, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status WriteBlobs(const NewStep& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void Count(const RunIndex::Step& step, int change, BlobChanges* changes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  absl::StatusOr<v1::StepRecord> ReadRecord(absl::string_view run, int32_t index) const;
  // The blob of `sha256` failed once; reads it again with no writer about, and quarantines it if
  // it fails again. Whether it did.
  absl::StatusOr<bool> QuarantineIfCorrupt(const std::string& sha256);
  absl::Status DeleteRunLocked(const std::string& run, std::optional<v1::AuditEvent> audit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status CheckUnused(const v1::Run& run) const;
  std::vector<std::string> JobsNeeding(const v1::Run& run) const;
  // Notes that the run was used, at most once a minute on the disk.
  void Touch(absl::string_view run);

  Store* const store_;
  const StepStoreOptions options_;
  BlobStore blobs_;

  // Held by a change from its first look to its end.
  absl::Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool paused_ ABSL_GUARDED_BY(write_mutex_) = false;
  mutable absl::Mutex mutex_;
  RunIndex index_ ABSL_GUARDED_BY(mutex_);  // Of what is durable.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STEP_STORE_H_
