#ifndef PLUMBLINE_SERVER_STORE_STORE_CHECK_H_
#define PLUMBLINE_SERVER_STORE_STORE_CHECK_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace plumbline::server {

// Verifies a data folder that no coordinator has open, and changes nothing in it: the checksums of
// RocksDB's blocks, every record, what records say of one another, and the digest of every blob and
// artifact. One thread at a time.
class StoreCheck {
 public:
  struct Result {
    // A sentence each, at most kMaxProblems, and how many there are.
    std::vector<std::string> problems;
    int64_t problem_count = 0;
    int64_t jobs = 0;
    int64_t tasks = 0;
    int64_t events = 0;
    int64_t runs = 0;
    int64_t steps = 0;
    int64_t blobs = 0;
    int64_t artifacts = 0;
    int64_t bytes = 0;  // Of blobs and artifacts.
  };
  static constexpr int kMaxProblems = 100;

  // An error is one that says nothing about the data: the folder is in use (STORE_IN_USE), not
  // there, or of a format that this program does not read. What cannot be read is a problem.
  static absl::StatusOr<Result> Run(const std::string& data_dir, rocksdb::Env* env = nullptr);

 private:
  struct JobState {
    store::JobRecord record;
    std::vector<store::TaskRecord> tasks;
    bool has_number = false;
  };

  StoreCheck(const Store* store, std::string data_dir)
      : store_(store), data_dir_(std::move(data_dir)) {}

  void Problem(std::string sentence);
  // Notes it if it is an error.
  void Note(absl::string_view doing, const absl::Status& status);
  // Visits a prefix with parsed records; unreadable ones are problems and are passed over.
  template <typename Record, typename Take>
  void Records(Family family, const std::string& prefix, const Take& take);

  // Jobs and what belongs to them (store_check_jobs.cc).
  void CheckJobs();
  void CheckJob(int64_t number, const JobState& job);
  void CheckTask(TaskKey key, const JobState& job);
  void CheckIndices();
  void CheckEvents();
  void CheckRevisions();

  void CheckFiles();
  void CheckAudit();
  void CheckWorkersAndShares();
  void CheckArtifacts();
  void CheckSteps();
  void CheckBlobs(const std::map<std::string, int32_t>& references);

  const Store* const store_;
  const std::string data_dir_;
  Result result_;
  std::map<int64_t, JobState> jobs_;
  std::map<TaskKey, store::LeaseRecord> leases_;
  std::set<TaskKey> reports_;
  std::map<int64_t, int64_t> newest_events_;  // By job.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STORE_CHECK_H_
