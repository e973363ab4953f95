#ifndef PLUMBLINE_SERVER_TESTING_ACKNOWLEDGED_LOAD_H_
#define PLUMBLINE_SERVER_TESTING_ACKNOWLEDGED_LOAD_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"
#include "server/testing/journal.h"

// Clients and workers at a coordinator that is killed under them, and a book of what it
// acknowledged to them: afterwards every entry must be there, once.

namespace plumbline::server {

// Of the larger output of every step that a LoadWorker saves.
inline constexpr int64_t kLoadStepBytes = 6000;

// What was acknowledged. Any thread may call.
class AcknowledgedBook {
 public:
  // `journal`, which must outlive the book, is told of problems and of calls that failed.
  explicit AcknowledgedBook(Journal* journal = nullptr) : journal_(journal) {}

  void Created(const std::string& request_id, const std::string& job);
  void Cancelled(const std::string& job);
  void Deletes(const std::string& job);  // May be gone from here on.
  void Deleted(const std::string& job);
  // Events 1 to `count` of an attempt.
  void Reported(const std::string& task, int32_t attempt, int64_t count);
  void Completed(const std::string& task, const std::string& verdict);
  void Saved(uint64_t seed, int32_t step);

  // About to compute a step that GetStep did not have: wrong if it was acknowledged.
  void Computes(uint64_t seed, int32_t step);
  // A worker was given a task: wrong if it was acknowledged as done.
  void Given(const std::string& task);
  void Wrong(std::string sentence) ABSL_LOCKS_EXCLUDED(mutex_);
  // For the journal alone.
  void Note(absl::string_view who, absl::string_view what);
  // The steps of the seed may be gone from here on.
  void DeletesRun(uint64_t seed);
  // From here on bytes of steps may be found corrupt, and such a step is computed again.
  void BytesMayRot();

  // Acknowledgements so far.
  int64_t operations() const { return operations_; }
  // What was wrong, a sentence each.
  std::vector<std::string> problems() const;
  std::string Summary() const;

  // Holds `count` jobs (0: all, and all steps), chosen by chance, to the book, over a connection to
  // a coordinator that is up, or may end meanwhile. Problems are noted.
  void Check(const std::shared_ptr<grpc::Channel>& channel, size_t count, std::mt19937* random,
             bool may_end = false);

 private:
  struct JobEntry {
    std::string request_id;
    bool cancelled = false;
    bool deletes = false;
    bool deleted = false;
  };
  struct TaskEntry {
    std::map<int32_t, int64_t> events;  // By attempt.
    std::string verdict;                // Empty: not completed.
  };
  // A copy of one job's entries: what the coordinator acknowledges meanwhile is more, never less.
  struct Entries {
    JobEntry job;
    std::map<std::string, TaskEntry> tasks;
  };

  void WrongLocked(std::string sentence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the job may be gone, also if that began after the entries were copied.
  bool MayBeGone(const std::string& job) const;
  // UNAVAILABLE where the coordinator is gone, and nothing can be said.
  grpc::Status CheckJob(v1::JobService::Stub* stub, const std::string& name,
                        const Entries& entries);
  grpc::Status CheckEvents(v1::JobService::Stub* stub, const v1::Job& job, const Entries& entries);
  void CheckSteps(const std::shared_ptr<grpc::Channel>& channel);

  Journal* const journal_;
  std::atomic<int64_t> operations_{0};
  mutable absl::Mutex mutex_;
  std::map<std::string, JobEntry> jobs_ ABSL_GUARDED_BY(mutex_);  // By name.
  // By job, then by task.
  std::map<std::string, std::map<std::string, TaskEntry>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::set<int32_t>> steps_ ABSL_GUARDED_BY(mutex_);  // By seed.
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
  bool bytes_may_rot_ ABSL_GUARDED_BY(mutex_) = false;
};

// What clients and workers do when the coordinator is gone.
enum class WhenGone {
  kEnd,
  kRetry,  // Each call again until it is answered, as the product's own do.
};

// Makes jobs until Stop, or until the coordinator is gone: block replays and generations, each seed
// once, now and then one twice, cancelled or deleted.
class LoadClient {
 public:
  LoadClient(std::shared_ptr<grpc::Channel> channel, AcknowledgedBook* book, std::string prefix,
             unsigned seed, WhenGone when_gone = WhenGone::kEnd);
  ~LoadClient() { Stop(); }
  void Stop();
  bool ended() const { return ended_; }
  // No more than so many jobs are made ahead of those that workers have finished.
  static constexpr int64_t kMostAhead = 60;

 private:
  void Run(unsigned seed);
  // Makes a job, perhaps twice; its name, or "" if the coordinator is gone.
  std::string Create(v1::JobService::Stub* stub, int number, std::mt19937* random);
  // False if the coordinator is gone.
  bool Cancel(v1::JobService::Stub* stub, const std::string& name);
  bool Delete(v1::JobService::Stub* stub, const std::string& name);
  // Whether the job has ended; nothing if the coordinator is gone.
  std::optional<bool> HasEnded(v1::JobService::Stub* stub, const std::string& name);
  // Makes `call`, of the method `name`.
  template <typename Call>
  grpc::Status Make(absl::string_view name, const Call& call);

  const std::shared_ptr<grpc::Channel> channel_;
  AcknowledgedBook* const book_;
  const std::string prefix_;
  const WhenGone when_gone_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// A worker that computes nothing: it takes tasks, replays the steps that are saved, saves the rest,
// reports events and a verdict. Now and then it hands a task back or says that it failed. It ends
// when its coordinator is gone.
class LoadWorker {
 public:
  LoadWorker(std::shared_ptr<grpc::Channel> channel, AcknowledgedBook* book, std::string id,
             std::string incarnation, unsigned seed, WhenGone when_gone = WhenGone::kEnd);
  ~LoadWorker();

  // As SIGKILL: whatever call is under way breaks off, and nothing more is said.
  void Kill();
  // As SIGTERM: hands back what it holds and signs off.
  void Terminate() { terminating_ = true; }
  // "ID.INCARNATION".
  const std::string& name() const { return name_; }
  bool ended() const { return ended_; }

 private:
  void Run();
  bool RunTask(const v1::Assignment& assignment);
  bool RunSteps(const v1::Assignment& assignment, int64_t* events);
  bool Register();
  bool Heartbeat(const v1::Lease* lease, v1::HeartbeatResponse* response, bool signing_off);
  // False: the attempt, or the worker, is over.
  bool MayGoOn(const v1::Lease& lease);
  bool ReportEvents(const v1::Lease& lease, int32_t attempt, int64_t* sent, int count);
  bool ReadSteps(uint64_t seed, std::set<int32_t>* saved);
  bool PutStep(const v1::Lease& lease, uint64_t seed, int32_t index);
  bool Complete(const v1::Lease& lease, int64_t events);
  bool Fail(const v1::Lease& lease, v1::FailureClass failure_class);
  bool Release(const v1::Lease& lease);
  // Makes `call`, of the method `name`, with a context that Kill breaks off.
  template <typename Call>
  grpc::Status Make(absl::string_view name, const Call& call);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  AcknowledgedBook* const book_;
  const std::string id_;
  const std::string incarnation_;
  const std::string name_;
  const WhenGone when_gone_;
  std::mt19937 random_;  // Of the thread.
  bool lease_lost_ = false;
  bool cancelled_ = false;

  std::atomic<bool> killed_{false};
  std::atomic<bool> terminating_{false};
  std::atomic<bool> ended_{false};
  absl::Mutex mutex_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_ACKNOWLEDGED_LOAD_H_
