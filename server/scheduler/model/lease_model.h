#ifndef PLUMBLINE_SERVER_SCHEDULER_MODEL_LEASE_MODEL_H_
#define PLUMBLINE_SERVER_SCHEDULER_MODEL_LEASE_MODEL_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/scheduler/scheduler.h"
#include "server/store/lease_table.h"
#include "server/store/write_set.h"

// The protocol of leases and fencing tokens as a state machine that can be explored: the product's
// own Scheduler and LeaseTable, and around them what may go wrong. Workers are killed and come
// back, calls arrive late, twice or never, answers are lost, clocks run on, and the coordinator
// dies with whatever was not durable. What the dispatcher does between the two classes is short and
// is said here again (LeaseModel::Deliver).

namespace plumbline::server {

// Mistakes that the protocol must not make, to show that they would be found.
enum class PlantedBug {
  kNone,
  // A step's lease is checked when its upload begins and not where it is written.
  kUnfencedCommit,
  // A restarted coordinator counts tokens from the start.
  kTokensNotDurable,
  // A worker is told of its lease before that is durable.
  kAnswerBeforeSync,
  // A completion is taken from whoever was once given the task.
  kCompleteUnderAnyToken,
};

// How often each may happen in one history.
struct ModelLimits {
  int kills = 0;     // Of a worker's process.
  int crashes = 0;   // Of the coordinator.
  int expiries = 0;  // The clock runs on by a lease.
  int timeouts = 0;  // A call is given up by its worker and arrives all the same.
  int losses = 0;    // An answer does not arrive.
  int steps = 0;     // Saved, by both workers together.
  int events = 0;    // Reported, likewise.
  int releases = 0;  // Tasks handed back, likewise.
};

// A clock that stands where the explored history is.
class ModelClock final : public Clock {
 public:
  absl::Time Now() override { return now; }
  bool AwaitUntil(absl::Mutex*, const absl::Condition&, absl::Time) override { return true; }
  absl::Time now = absl::UnixEpoch();
};

// One state. Copies are cheap; what they share is not changed.
class LeaseModel {
 public:
  LeaseModel(ModelClock* clock, ModelLimits limits, PlantedBug bug);

  // What may happen next, in words. Take with one of its indices makes that happen.
  std::vector<std::string> Actions() const;
  void Take(size_t action);

  // What has been broken, if anything.
  const std::string& violation() const { return violation_; }
  // Equal for states from which the same can happen.
  std::string Fingerprint() const;

  // What the history has come to, so that a test can tell that it was reached.
  bool has_completed() const { return completed_ > 0; }
  bool has_refused() const { return refused_; }
  bool has_resumed() const { return resumed_; }

 private:
  enum class Call { kRegister, kAcquire, kBeginStep, kCommitStep, kEvent, kComplete, kRelease };
  struct Message {
    int worker = 0;
    int process = 0;
    Call call = Call::kRegister;
    TaskKey task;
    int64_t token = 0;
  };
  // What one worker knows.
  struct Worker {
    int process = 1;
    bool registered = false;
    bool calling = false;
    TaskKey task;
    int64_t token = 0;  // 0: it holds nothing.
    bool uploading = false;
  };
  // A set on its way to the disk, and whom it answers.
  struct Queued {
    std::shared_ptr<const WriteSet> set;
    std::optional<Message> call;
    int64_t granted = 0;  // To the caller, for `task`.
    TaskKey task;
    bool stale = false;  // The call was refused; unless it is recorded as done already.
  };
  struct Action {
    enum Kind { kSend, kDeliver, kTimeOut, kSync, kSyncAndLose, kKill, kCrash, kExpire } kind;
    int worker = 0;
    Call call = Call::kRegister;
    size_t message = 0;
  };
  using Database = std::map<std::string, std::string>;

  static constexpr int64_t kJob = 1;
  static SchedulerOptions Options();
  static std::string WorkerId(int worker);
  static std::string WorkerName(int worker);
  static std::string NameOf(Call call);
  std::vector<Action> Enabled() const;
  std::string Describe(const Action& action) const;
  Scheduler* Change();  // The scheduler, as a copy of one's own.

  // Calls (lease_model_calls.cc).
  void Deliver(Message message);
  void DeliverWrite(const Message& message);
  void Finish(const Message& message, bool lease_lost);
  // What the dispatcher's Commit does; false if the fence refuses.
  bool Commit(WriteSet set, Queued queued);

  // The disk and the answers (lease_model_store.cc).
  void Sync(bool answer_arrives);
  void Apply(const Queued& queued);
  void CheckApplied(const Queued& queued);
  void Answer(const Queued& queued);
  void Grant(const Message& call, TaskKey task, int64_t token);
  void Crash();
  void Break(std::string what);

  static std::string KeyOf(Family family, const std::string& key);
  std::string Find(Family family, const std::string& key) const;
  int64_t DurableToken(TaskKey task) const;
  bool IsDone(TaskKey task, int64_t token) const;

  ModelClock* const clock_;
  PlantedBug bug_;
  ModelLimits left_;
  absl::Time now_;
  std::shared_ptr<Scheduler> scheduler_;
  LeaseTable fence_;
  std::shared_ptr<const Database> durable_;
  std::deque<Queued> queue_;
  std::vector<Message> network_;
  std::array<Worker, 2> workers_;

  // History, as far as it must never be contradicted.
  std::map<int64_t, std::pair<int, int>> told_;  // Token -> worker and process that were told.
  std::set<std::string> acknowledged_;           // Writes.
  std::set<TaskKey> acknowledged_completions_;
  int completed_ = 0;
  bool refused_ = false;
  bool resumed_ = false;
  std::string violation_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_MODEL_LEASE_MODEL_H_
