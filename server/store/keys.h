#ifndef PLUMBLINE_SERVER_STORE_KEYS_H_
#define PLUMBLINE_SERVER_STORE_KEYS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The keys of the store. Numbers are big-endian, so that keys sort as numbers do.

namespace plumbline::server {

// A task by its job's creation number (from 1, never used again) and its index in the job.
struct TaskKey {
  int64_t job = 0;
  int32_t task = 0;

  friend bool operator==(const TaskKey& a, const TaskKey& b) {
    return a.job == b.job && a.task == b.task;
  }
  friend bool operator<(const TaskKey& a, const TaskKey& b) {
    return a.job != b.job ? a.job < b.job : a.task < b.task;
  }
  template <typename H>
  friend H AbslHashValue(H h, const TaskKey& key) {
    return H::combine(std::move(h), key.job, key.task);
  }
};

// Column families of the one database.
enum class Family {
  kMeta,       // "default": the format, workers, the fair share
  kJobs,       // jobs, their indices, tasks, task reports
  kLeases,     // TaskKey -> LeaseRecord, and the newest fencing token
  kEvents,     // (job, sequence) -> JobEvent, and the log of revisions
  kArtifacts,  // artifacts, their index by task, uploads
  kAudit,      // sequence -> AuditEvent
  kRuns,       // run -> RunRecord
  kSteps,      // (run, index) -> StepRecord, and SHA-256 -> BlobRecord
  kBlobs,      // SHA-256 -> bytes; written by BlobStore alone
};
inline constexpr int kFamilyCount = 9;
absl::string_view FamilyName(Family family);

namespace keys {

std::string Number(int64_t number);
// The number that `key` ends with; 0 if it is too short.
int64_t TrailingNumber(absl::string_view key);
// The first key after every key that begins with `prefix`.
std::string PrefixEnd(absl::string_view prefix);

// Family::kMeta.
std::string Format();
std::string NewestJob();  // -> the largest number given
std::string Worker(absl::string_view name);
std::string Workers();  // Prefix.
std::string Share(absl::string_view group);
std::string Shares();  // Prefix.

// Family::kJobs.
std::string Job(int64_t job);
std::string Jobs();                           // Prefix.
std::string JobId(absl::string_view id);      // -> number
std::string RequestId(absl::string_view id);  // -> number
std::string LiveJob(int64_t job);             // Present while it has not finished.
std::string LiveJobs();                       // Prefix.
// By the time it ended. Present once it has finished.
std::string FinishedJob(absl::Time end, int64_t job);
std::string FinishedJobs();  // Prefix.
std::string Task(TaskKey task);
std::string Tasks(int64_t job);  // Prefix.
std::string Report(TaskKey task);
std::string Reports(int64_t job);  // Prefix.

// Family::kLeases.
std::string Lease(TaskKey task);
std::string Leases();        // Prefix.
std::string FencingToken();  // -> the newest
// The task of a key that Lease, Task or Report made.
TaskKey TrailingTask(absl::string_view key);

// Family::kEvents.
std::string Event(int64_t job, int64_t sequence);
std::string Events(int64_t job);  // Prefix.
std::string Revision(int64_t revision);
std::string Revisions();  // Prefix.

// Family::kArtifacts.
std::string Artifact(absl::string_view name);
std::string Artifacts();                                              // Prefix.
std::string TaskArtifact(TaskKey task, absl::string_view file_name);  // -> name
std::string JobArtifacts(int64_t job);                                // Prefix.
// -> name. A plug-in and an input may have the same bytes under the same name.
std::string UploadedArtifact(absl::string_view sha256, absl::string_view file_name, bool plugin);
std::string Upload(absl::string_view name);
std::string Uploads();  // Prefix.

// Family::kAudit.
std::string Audit(int64_t sequence);

// Family::kRuns. `run` is the identity's SHA-256 in hex.
std::string Run(absl::string_view run);

// Family::kSteps.
std::string Step(absl::string_view run, int32_t index);
std::string Steps();  // Prefix.
std::string BlobRecord(absl::string_view sha256);
std::string BlobRecords();  // Prefix.

// Family::kBlobs.
std::string Blob(absl::string_view sha256);
std::string BlobMark(absl::string_view sha256);  // -> size
std::string BlobMarks();                         // Prefix.

}  // namespace keys
}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_KEYS_H_
