#ifndef PLUMBLINE_SERVER_STORE_WRITE_SET_H_
#define PLUMBLINE_SERVER_STORE_WRITE_SET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "proto/plumbline/v1/event.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/worker.pb.h"
#include "server/store/keys.h"
#include "server/store/record.pb.h"

namespace plumbline::server {

// Changes that become durable together or not at all. Built by one thread, then given to
// Store::Commit, which numbers its events and audit events.
class WriteSet {
 public:
  // One change of the database.
  struct Operation {
    enum Kind { kPut, kDelete, kDeleteRange } kind;
    Family family;
    std::string key;
    std::string value;  // kDeleteRange: the end.
  };
  struct LeaseChange {
    TaskKey task;
    int64_t token;  // 0: ended.
  };

  // Ties the whole set to a lease: Store::Commit refuses it unless `token` is the newest that the
  // task was granted. Every write on behalf of a task needs this.
  void RequireLease(TaskKey task, int64_t token);

  // A grant. Its token must be larger than any that was granted before.
  void GrantLease(TaskKey task, const store::LeaseRecord& lease);
  // The same lease with news in it.
  void UpdateLease(TaskKey task, const store::LeaseRecord& lease);
  // The holder's token is refused from here on.
  void EndLease(TaskKey task);

  // A job under a number larger than any before.
  void CreateJob(int64_t job, const store::JobRecord& record);
  // `live`: it has not finished, so that it is loaded at start.
  void PutJob(int64_t job, const store::JobRecord& record, bool live);
  void PutTask(TaskKey task, const store::TaskRecord& record);
  void PutReport(TaskKey task, const v1::TaskReport& report);
  // Everything of a job that is not live, except the artifacts' own records.
  void DeleteJob(int64_t job, const store::JobRecord& record);

  void AppendEvent(int64_t job, v1::JobEvent event);
  // Drops the events before `first_kept` of a job that is not live.
  void TrimEvents(int64_t job, store::JobRecord record, int64_t first_kept);

  void PutFormat(const store::StoreFormat& format);

  void PutWorker(const store::WorkerRecord& worker);
  void DeleteWorker(absl::string_view name);

  // How much of the workers' time a group of the fair share has used.
  void PutShare(absl::string_view group, absl::Duration used);
  void DeleteShare(absl::string_view group);

  // `task`: what made it; unset for an upload, which is then found by its digest too.
  void PutArtifact(const v1::Artifact& artifact, std::optional<TaskKey> task);
  // Leaves the index by task to whoever overwrites or deletes that.
  void DeleteArtifact(const v1::Artifact& artifact);
  void PutUpload(const store::UploadRecord& upload);
  void DeleteUpload(absl::string_view name);

  void AppendAudit(v1::AuditEvent event);

  // `record`'s run has its name.
  void PutRun(const store::RunRecord& record);
  void DeleteRun(absl::string_view run);
  // `run` is the identity's SHA-256 in hex.
  void PutStep(absl::string_view run, const v1::StepRecord& step);
  void DeleteStep(absl::string_view run, int32_t index);
  // Without references the record goes.
  void PutBlobRecord(absl::string_view sha256, const store::BlobRecord& record);

  // Jobs that it has events of or deletes, each once.
  std::vector<int64_t> changed_jobs() const;

  bool empty() const {
    return operations_.empty() && lease_changes_.empty() && events_.empty() && audits_.empty() &&
           deleted_jobs_.empty();
  }

  // What it does, for whoever applies it.
  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<LeaseChange>& required_leases() const { return required_leases_; }
  const std::vector<LeaseChange>& lease_changes() const { return lease_changes_; }
  // With the numbers that Store::Commit gave them.
  const std::vector<v1::JobEvent>& events() const { return events_; }

 private:
  friend class Store;

  void Put(Family family, std::string key, std::string value);
  void Delete(Family family, std::string key);
  void DeletePrefix(Family family, const std::string& prefix);

  std::vector<Operation> operations_;
  std::vector<LeaseChange> required_leases_;
  std::vector<LeaseChange> lease_changes_;
  std::vector<int64_t> event_jobs_;  // Of events_.
  std::vector<v1::JobEvent> events_;
  std::vector<v1::AuditEvent> audits_;
  std::vector<store::Revision> deleted_jobs_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_WRITE_SET_H_
