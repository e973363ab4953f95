#ifndef PLUMBLINE_SERVER_STORE_STORE_H_
#define PLUMBLINE_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/store/keys.h"
#include "server/store/record.pb.h"
#include "server/store/write_set.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace plumbline::server {

struct StoreOptions {
  // A folder, made if it is not there. One process has it open at a time.
  std::string path;
  // Times writes. Must outlive the store.
  Clock* clock = SystemClock();
  // Called with the duration of every synced write and the number of sets in it. May be empty.
  std::function<void(absl::Duration, int)> on_write;
  // Through which files are reached; null: the machine's own. Must outlive the store.
  rocksdb::Env* env = nullptr;
  // Entries kept of the log of revisions and of the audit log. The oldest go.
  int64_t max_log_entries = 1 << 20;
};

// The durable state of the coordinator, in RocksDB.
//
// Writes are queued; one thread takes all that wait, writes them as one synced batch (group commit)
// and tells each. Readers see what is durable and nothing else. Any thread may call; reads block on
// the disk.
class Store {
 public:
  // FAILED_PRECONDITION where another process has the folder open (reason STORE_IN_USE) or the
  // store is of a format version that this program does not read. An older one that it reads
  // becomes the present one.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);

  // What is in the folder, as it is: nothing is written, also not what an older format lacks.
  // Commit is refused. STORE_IN_USE as Open.
  static absl::StatusOr<std::unique_ptr<Store>> OpenReadOnly(StoreOptions options);

  // For what a backup wrote to a folder: makes it a store of its own, so that nothing which the one
  // that was backed up gave out afterwards is taken for its: resume tokens are refused, fencing
  // tokens go on far above those, and format().restored() says that no lease is held.
  static absl::Status MarkRestored(StoreOptions options);

  // Makes everything durable that was committed.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Checks the leases that `set` requires, numbers its events, and queues it. Sets become durable
  // in the order of the calls. When `set` is, or could not be, `done` is called, in that order too,
  // on a thread of the store's; it must not block. An error here means that nothing was queued and
  // `done` is never called: ABORTED with reason LEASE_LOST for a token that is not the newest,
  // UNAVAILABLE once a write has failed, since what memory holds is then ahead of the disk.
  absl::Status Commit(WriteSet* set, std::function<void(absl::Status)> done);

  // Commit, and waits.
  absl::Status CommitAndWait(WriteSet* set);

  // What Commit checks. OK if `token` is the newest lease of the task.
  absl::Status CheckLease(TaskKey task, int64_t token) const;

  // The error of the first write that failed; OK before.
  absl::Status Health() const;

  // Of its files together.
  int64_t size_bytes() const;

  const store::StoreFormat& format() const;

  // The largest number ever given, 0 before the first.
  absl::StatusOr<int64_t> NewestJobNumber() const;
  absl::StatusOr<int64_t> NewestFencingToken() const;

  // NOT_FOUND where there is none. `id` is the last part of the name.
  absl::StatusOr<int64_t> FindJob(absl::string_view id) const;
  absl::StatusOr<int64_t> FindRequest(absl::string_view request_id) const;
  absl::StatusOr<store::JobRecord> ReadJob(int64_t job) const;
  absl::StatusOr<std::vector<store::TaskRecord>> ReadTasks(int64_t job) const;
  absl::StatusOr<store::TaskRecord> ReadTask(TaskKey task) const;
  absl::StatusOr<v1::TaskReport> ReadReport(TaskKey task) const;

  // Calls `visit` with jobs below the number `before`, newest first, until it returns false.
  absl::Status VisitJobs(int64_t before,
                         const std::function<bool(int64_t, const store::JobRecord&)>& visit) const;
  // Numbers of the jobs that have not finished, oldest first.
  absl::StatusOr<std::vector<int64_t>> LiveJobs() const;
  // A finished job: when it ended, to the second, and its number.
  using FinishedJob = std::pair<absl::Time, int64_t>;
  // At most `max_count` jobs that ended before `end`, in order, those after `after` alone.
  absl::StatusOr<std::vector<FinishedJob>> FinishedJobs(FinishedJob after, absl::Time end,
                                                        int max_count) const;
  absl::StatusOr<std::vector<std::pair<TaskKey, store::LeaseRecord>>> ReadLeases() const;

  // Events after `after`, at most `max_count` and about `max_bytes`, but one at least.
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(int64_t job, int64_t after, int max_count,
                                                       int64_t max_bytes) const;
  // ReadEvents, each as it is stored: the bytes of a JobEvent.
  struct EncodedEvents {
    std::vector<std::string> events;
    int64_t last_sequence = 0;  // Of the last; 0 if there is none.
  };
  absl::StatusOr<EncodedEvents> ReadEncodedEvents(int64_t job, int64_t after, int max_count,
                                                  int64_t max_bytes) const;
  absl::StatusOr<v1::JobEvent> ReadEvent(int64_t job, int64_t sequence) const;
  // Sequence number of the job's newest event, 0 before the first.
  absl::StatusOr<int64_t> NewestSequence(int64_t job) const;

  struct NumberedRevision {
    int64_t number = 0;
    store::Revision revision;
  };
  absl::StatusOr<std::vector<NumberedRevision>> ReadRevisions(int64_t after, int max_count) const;
  // 0 and 0 while there is none.
  absl::StatusOr<std::pair<int64_t, int64_t>> OldestAndNewestRevision() const;

  absl::StatusOr<std::vector<store::WorkerRecord>> ReadWorkers() const;

  // By group of the fair share.
  absl::StatusOr<std::map<std::string, absl::Duration>> ReadShares() const;

  absl::StatusOr<v1::Artifact> ReadArtifact(absl::string_view name) const;
  // What the job's tasks made, by task and file name.
  absl::StatusOr<std::vector<v1::Artifact>> ReadArtifactsOf(int64_t job) const;
  absl::StatusOr<v1::Artifact> FindTaskArtifact(TaskKey task, absl::string_view file_name) const;
  absl::StatusOr<v1::Artifact> FindUploadedArtifact(absl::string_view sha256,
                                                    absl::string_view file_name, bool plugin) const;
  absl::StatusOr<std::vector<std::string>> ArtifactNames() const;
  absl::StatusOr<store::UploadRecord> ReadUpload(absl::string_view name) const;
  absl::StatusOr<std::vector<std::string>> UploadNames() const;

  // Calls `visit` with audit events below the sequence number `before`, newest first, until it
  // returns false.
  absl::Status VisitAudit(int64_t before,
                          const std::function<bool(const v1::AuditEvent&)>& visit) const;

 private:
  // They keep their records in this database.
  friend class StepStore;
  friend class Backups;
  friend class StoreCheck;

  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STORE_H_
