// How the step store takes a step.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/crash_point.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/store/run_identity.h"
#include "server/store/step_store.h"

namespace plumbline::server {
namespace {

// What two executions of one step read differently, e.g. "rows (..., not ...)".
std::string DifferingInputs(const v1::StepRecord& stored, const v1::StepRecord& offered) {
  std::map<std::string, std::pair<std::string, std::string>> digests;
  for (const v1::TensorDigest& tensor : stored.inputs()) {
    digests[tensor.name()].first = tensor.sha256();
  }
  for (const v1::TensorDigest& tensor : offered.inputs()) {
    digests[tensor.name()].second = tensor.sha256();
  }
  std::vector<std::string> differing;
  for (const auto& [name, pair] : digests) {
    if (pair.first == pair.second) continue;
    differing.push_back(absl::StrCat(name, " (", pair.second.empty() ? "missing" : pair.second,
                                     ", stored with ", pair.first.empty() ? "none" : pair.first,
                                     ")"));
  }
  return differing.empty() ? "no tensor, so the digest itself is false"
                           : absl::StrJoin(differing, ", ");
}

// Empty, or what the outputs of the same inputs differ in.
std::string DifferingOutputs(const v1::StepRecord& stored, const v1::StepRecord& offered) {
  if (stored.outputs_size() != offered.outputs_size()) {
    return absl::StrCat(offered.outputs_size(), " tensors, stored with ", stored.outputs_size());
  }
  for (int i = 0; i < stored.outputs_size(); ++i) {
    const v1::TensorDigest& a = stored.outputs(i);
    const v1::TensorDigest& b = offered.outputs(i);
    if (a.name() != b.name() || a.sha256() != b.sha256()) {
      return absl::StrCat(b.name(), " (", b.sha256(), ", stored with ", a.name(), " ", a.sha256(),
                          ")");
    }
  }
  return "";
}

absl::Status Failure(absl::string_view reason, const std::string& message) {
  return WithReason(absl::FailedPreconditionError(message), reason);
}

}  // namespace

absl::StatusOr<v1::Run> StepStore::RunToWrite(const NewStep& step) const {
  const v1::PutStepRequest::Header& header = step.header;
  const std::string& id = header.identity().sha256();
  const absl::Time now = options_.clock->Now();
  v1::Run run;
  {
    absl::MutexLock lock(&mutex_);
    if (const RunIndex::Run* const found = index_.Find(id); found != nullptr) {
      run = found->record;
      // Its age is that of its first step.
      if (found->steps.empty()) *run.mutable_create_time() = ToTimestamp(now);
    }
  }
  if (run.name().empty()) {
    run.set_name(absl::StrCat("runs/", id));
    *run.mutable_identity() = header.identity();
    run.set_state(v1::RUN_STATE_ACTIVE);
    run.set_seed(header.seed());
    run.set_total_steps(header.total_steps());
    run.set_preflight(header.preflight());
    run.set_decodes(header.decodes());
    run.set_decode_of(header.decode_of());
    *run.mutable_generation() = step.generation;
    run.set_checkpoint(step.checkpoint);
    *run.mutable_create_time() = ToTimestamp(now);
  }
  if (run.state() == v1::RUN_STATE_BROKEN) {
    return Failure("RUN_BROKEN", absl::StrCat(run.name(), " is broken: ", run.problem()));
  }
  PLUMBLINE_RETURN_IF_ERROR(
      CheckSameParts(run.identity().parts(), header.identity().parts(), run.name(), "RUN_DIFFERS"));
  if (run.seed() != header.seed() || run.total_steps() != header.total_steps()) {
    return Failure("RUN_DIFFERS",
                   absl::StrCat(run.name(), " has seed ", run.seed(), " and ", run.total_steps(),
                                " steps, not seed ", header.seed(), " and ", header.total_steps()));
  }
  // Under a gate of the same identity the same bytes count.
  run.set_preflight(run.preflight() && header.preflight());
  *run.mutable_last_use_time() = ToTimestamp(now);
  return run;
}

absl::Status StepStore::PutRun(const NewStep& step, v1::AuditEvent audit) {
  absl::MutexLock writing(&write_mutex_);
  PLUMBLINE_RETURN_IF_ERROR(store_->CheckLease(step.task, step.fencing_token));
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Run run, RunToWrite(step));
  WriteSet set;
  set.RequireLease(step.task, step.fencing_token);
  store::RunRecord record;
  *record.mutable_run() = run;
  set.PutRun(record);
  set.AppendAudit(std::move(audit));
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  absl::MutexLock lock(&mutex_);
  index_.PutRun(run);
  return absl::OkStatus();
}

absl::Status StepStore::Break(const NewStep& step, v1::Run run, const absl::Status& why) {
  run.set_state(v1::RUN_STATE_BROKEN);
  run.set_problem(std::string(why.message()));
  WriteSet set;
  set.RequireLease(step.task, step.fencing_token);
  store::RunRecord record;
  *record.mutable_run() = run;
  set.PutRun(record);
  PLUMBLINE_RETURN_IF_ERROR(store_->CommitAndWait(&set));
  absl::MutexLock lock(&mutex_);
  index_.PutRun(run);
  return why;
}

absl::Status StepStore::WriteBlobs(const NewStep& step) {
  std::vector<BlobStore::Blob> missing;
  std::set<absl::string_view> seen;
  {
    absl::MutexLock lock(&mutex_);
    for (int i = 0; i < step.header.record().outputs_size(); ++i) {
      const std::string& sha256 = step.header.record().outputs(i).sha256();
      const store::BlobRecord known = index_.FindBlob(sha256);
      const bool is_there = known.references() > 0 && !known.quarantined();
      if (is_there || !seen.insert(sha256).second) continue;
      missing.push_back({sha256, step.upload->outputs()[i]});
    }
  }
  // Reading a step's bytes once more and writing them take about as long, so both are done at once.
  // Bytes that are not what they are called have no record yet, and go again.
  absl::Status written;
  std::thread writer([&] { written = blobs_.Write(missing); });
  const absl::Status checked = step.upload->CheckDigests();
  writer.join();
  if (checked.ok() || missing.empty()) return checked.ok() ? written : checked;
  std::vector<std::string> digests;
  for (const BlobStore::Blob& blob : missing) digests.push_back(blob.sha256);
  blobs_.Delete(digests).IgnoreError();  // Else the next start does it.
  return checked;
}

void StepStore::Count(const RunIndex::Step& step, int change, BlobChanges* changes) const {
  absl::MutexLock lock(&mutex_);
  for (const std::string& sha256 : step.outputs) {
    const auto [record, is_new] = changes->try_emplace(sha256);
    if (is_new) record->second = index_.FindBlob(sha256);
    record->second.set_references(record->second.references() + change);
  }
}

void StepStore::PauseWrites() {
  absl::MutexLock writing(&write_mutex_);
  paused_ = true;
}

void StepStore::ResumeWrites() {
  absl::MutexLock writing(&write_mutex_);
  paused_ = false;
}

absl::StatusOr<v1::PutStepResponse> StepStore::PutStep(const NewStep& step, v1::AuditEvent audit) {
  const v1::StepRecord& offered = step.header.record();
  const std::string& id = step.header.identity().sha256();
  const absl::Time start = options_.clock->Now();
  absl::MutexLock writing(&write_mutex_, absl::Condition(this, &StepStore::MayWrite));
  PLUMBLINE_RETURN_IF_ERROR(store_->CheckLease(step.task, step.fencing_token));
  CrashPoint(CrashPlace::kStoreStepReceived);
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, RunToWrite(step));

  BlobChanges changes;
  absl::StatusOr<v1::StepRecord> stored = ReadRecord(id, offered.index());
  if (stored.ok()) {
    const std::string where = absl::StrCat("step ", offered.index(), " of ", run.name());
    bool quarantined = false;
    {
      absl::MutexLock lock(&mutex_);
      quarantined = index_.IsQuarantined(RunIndex::StepOf(*stored));
    }
    if (stored->input_digest() != offered.input_digest()) {
      const absl::Status differs =
          Failure("STEP_INCONSISTENT", absl::StrCat(where,
                                                    " has other inputs than it is stored "
                                                    "with: ",
                                                    DifferingInputs(*stored, offered)));
      return quarantined ? Break(step, run, differs) : differs;
    }
    if (const std::string what = DifferingOutputs(*stored, offered); !what.empty()) {
      return WithReason(absl::DataLossError(
                            absl::StrCat(where, " has other outputs for the same inputs: ", what)),
                        "STEP_DIFFERS");
    }
    if (!quarantined) {
      PLUMBLINE_RETURN_IF_ERROR(step.upload->CheckDigests());
      v1::PutStepResponse response;
      *response.mutable_record() = *std::move(stored);
      response.set_already_stored(true);
      return response;
    }
    Count(RunIndex::StepOf(*stored), -1, &changes);
  } else if (!absl::IsNotFound(stored.status())) {
    return stored.status();
  }

  PLUMBLINE_RETURN_IF_ERROR(WriteBlobs(step));
  v1::PutStepResponse response;
  v1::StepRecord& record = *response.mutable_record();
  record = offered;
  record.set_run(run.name());
  record.clear_quarantined();
  *record.mutable_store_time() = ToTimestamp(options_.clock->Now());
  Count(RunIndex::StepOf(record), 1, &changes);
  for (const v1::TensorDigest& output : record.outputs()) {
    changes[output.sha256()].set_size_bytes(output.size_bytes());
    changes[output.sha256()].clear_quarantined();
  }
  WriteSet set;
  // The step is refused here if the lease was lost while its bytes were written.
  set.RequireLease(step.task, step.fencing_token);
  store::RunRecord run_record;
  *run_record.mutable_run() = run;
  set.PutRun(run_record);
  set.PutStep(id, record);
  for (const auto& [sha256, blob] : changes) set.PutBlobRecord(sha256, blob);
  set.AppendAudit(std::move(audit));
  if (absl::Status refused = store_->CommitAndWait(&set); !refused.ok()) {
    CollectOrphans().status().IgnoreError();
    return refused;
  }
  CrashPoint(CrashPlace::kStoreStepRecorded);
  {
    absl::MutexLock lock(&mutex_);
    index_.PutRun(run);
    index_.PutStep(id, record);
    for (const auto& [sha256, blob] : changes) index_.PutBlob(sha256, blob);
  }
  if (options_.on_step_written) {
    int64_t size_bytes = 0;
    for (const v1::TensorDigest& output : record.outputs()) size_bytes += output.size_bytes();
    options_.on_step_written(options_.clock->Now() - start, size_bytes);
  }
  return response;
}

}  // namespace plumbline::server
