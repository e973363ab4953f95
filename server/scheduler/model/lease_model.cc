// What may happen, and that it happens; and which states are the same.
#include "server/scheduler/model/lease_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/proto_util.h"
#include "server/scheduler/job_plan.h"

namespace plumbline::server {

SchedulerOptions LeaseModel::Options() {
  SchedulerOptions options;
  options.max_infrastructure_failures = 100;
  options.first_backoff = absl::ZeroDuration();
  options.longest_backoff = absl::ZeroDuration();
  return options;
}

std::string LeaseModel::WorkerId(int worker) { return worker == 0 ? "a" : "b"; }
std::string LeaseModel::WorkerName(int worker) {
  return absl::StrCat("workers/", WorkerId(worker));
}

LeaseModel::LeaseModel(ModelClock* clock, ModelLimits limits, PlantedBug bug)
    : clock_(clock),
      bug_(bug),
      left_(limits),
      now_(absl::UnixEpoch() + absl::Hours(1)),
      durable_(std::make_shared<Database>()) {
  clock_->now = now_;
  scheduler_ = std::make_shared<Scheduler>(clock_, Options());
  v1::Job job;
  job.set_name("jobs/j");
  job.set_kind(v1::JOB_KIND_BLOCK_REPLAY);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
  store::JobRecord record;
  *record.mutable_job() = job;
  scheduler_->AddJob(kJob, std::move(record), PlanTasks(job));
  Commit(scheduler_->TakeChanges(), {});
  Sync(true);
  // Both workers are there; what a kill makes of that comes later.
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    workers_[i].calling = true;
    Deliver({i, workers_[i].process, Call::kRegister, {}, 0});
    Sync(true);
  }
}

std::string LeaseModel::NameOf(Call call) {
  switch (call) {
    case Call::kRegister:
      return "register";
    case Call::kAcquire:
      return "acquire";
    case Call::kBeginStep:
      return "begin step";
    case Call::kCommitStep:
      return "commit step";
    case Call::kEvent:
      return "event";
    case Call::kComplete:
      return "complete";
    case Call::kRelease:
      return "release";
  }
  return "";
}

std::vector<LeaseModel::Action> LeaseModel::Enabled() const {
  std::vector<Action> actions;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    const Worker& worker = workers_[i];
    if (left_.kills > 0 && worker.registered) actions.push_back({Action::kKill, i});
    if (worker.calling) continue;
    const auto send = [&](Call call) { actions.push_back({Action::kSend, i, call}); };
    if (!worker.registered) {
      send(Call::kRegister);
    } else if (worker.token == 0) {
      send(Call::kAcquire);
    } else {
      if (worker.uploading) {
        send(Call::kCommitStep);
      } else if (left_.steps > 0) {
        send(Call::kBeginStep);
      }
      if (left_.events > 0) send(Call::kEvent);
      if (left_.releases > 0) send(Call::kRelease);
      send(Call::kComplete);
    }
  }
  for (size_t i = 0; i < network_.size(); ++i) {
    actions.push_back({Action::kDeliver, 0, Call::kRegister, i});
    const Message& message = network_[i];
    const Worker& worker = workers_[message.worker];
    if (left_.timeouts > 0 && worker.calling && worker.process == message.process) {
      actions.push_back({Action::kTimeOut, 0, Call::kRegister, i});
    }
  }
  if (!queue_.empty()) {
    actions.push_back({Action::kSync});
    if (left_.losses > 0 && queue_.front().call.has_value()) {
      actions.push_back({Action::kSyncAndLose});
    }
  }
  if (left_.crashes > 0) actions.push_back({Action::kCrash});
  if (left_.expiries > 0) actions.push_back({Action::kExpire});
  return actions;
}

std::string LeaseModel::Describe(const Action& action) const {
  const auto message = [this](size_t index) {
    const Message& found = network_[index];
    return absl::StrCat(NameOf(found.call), " of ", WorkerId(found.worker), ".", found.process,
                        found.token == 0 ? "" : absl::StrCat(" under token ", found.token));
  };
  switch (action.kind) {
    case Action::kSend:
      return absl::StrCat(WorkerId(action.worker), " calls: ", NameOf(action.call));
    case Action::kDeliver:
      return absl::StrCat("arrives: ", message(action.message));
    case Action::kTimeOut:
      return absl::StrCat("is given up, but not stopped: ", message(action.message));
    case Action::kSync:
      return "the oldest change becomes durable";
    case Action::kSyncAndLose:
      return "the oldest change becomes durable, its answer is lost";
    case Action::kKill:
      return absl::StrCat(WorkerId(action.worker), " is killed and comes back");
    case Action::kCrash:
      return "the coordinator is killed and comes back";
    case Action::kExpire:
      return "the time of a lease passes";
  }
  return "";
}

std::vector<std::string> LeaseModel::Actions() const {
  std::vector<std::string> words;
  for (const Action& action : Enabled()) words.push_back(Describe(action));
  return words;
}

Scheduler* LeaseModel::Change() {
  clock_->now = now_;
  scheduler_ = std::make_shared<Scheduler>(*scheduler_);
  return scheduler_.get();
}

void LeaseModel::Take(size_t index) {
  const Action action = Enabled()[index];
  switch (action.kind) {
    case Action::kSend: {
      Worker& worker = workers_[action.worker];
      left_.steps -= action.call == Call::kBeginStep ? 1 : 0;
      left_.events -= action.call == Call::kEvent ? 1 : 0;
      left_.releases -= action.call == Call::kRelease ? 1 : 0;
      worker.calling = true;
      network_.push_back({action.worker, worker.process, action.call, worker.task, worker.token});
      break;
    }
    case Action::kDeliver: {
      const Message message = network_[action.message];
      network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(action.message));
      Deliver(message);
      break;
    }
    case Action::kTimeOut:
      --left_.timeouts;
      workers_[network_[action.message].worker].calling = false;
      break;
    case Action::kSync:
      Sync(true);
      break;
    case Action::kSyncAndLose:
      --left_.losses;
      Sync(false);
      break;
    case Action::kKill: {
      --left_.kills;
      Worker next;
      next.process = workers_[action.worker].process + 1;
      workers_[action.worker] = next;
      break;
    }
    case Action::kCrash:
      --left_.crashes;
      Crash();
      break;
    case Action::kExpire: {
      --left_.expiries;
      now_ += Options().lease_duration;
      Scheduler* const scheduler = Change();
      scheduler->Tick();
      WriteSet set = scheduler->TakeChanges();
      if (!set.empty()) Commit(std::move(set), {});
      break;
    }
  }
}

std::string LeaseModel::Fingerprint() const {
  std::string print =
      absl::StrCat(absl::ToUnixSeconds(now_), "|", left_.kills, left_.crashes, left_.expiries,
                   left_.timeouts, left_.losses, left_.steps, left_.events, left_.releases, "|");
  const auto add_message = [&print](const Message& message) {
    absl::StrAppend(&print, message.worker, ".", message.process, ".",
                    static_cast<int>(message.call), ".", message.task.task, ".", message.token,
                    ";");
  };
  for (const Worker& worker : workers_) {
    absl::StrAppend(&print, worker.process, worker.registered, worker.calling, worker.uploading,
                    ".", worker.task.task, ".", worker.token, "|");
  }
  // In what order calls were made does not matter.
  std::vector<Message> network = network_;
  std::sort(network.begin(), network.end(), [](const Message& a, const Message& b) {
    return std::tie(a.worker, a.process, a.call, a.token) <
           std::tie(b.worker, b.process, b.call, b.token);
  });
  for (const Message& message : network) add_message(message);
  for (const auto& [key, value] : *durable_) absl::StrAppend(&print, key, "=", value, "\n");
  for (const Queued& queued : queue_) {
    absl::StrAppend(&print, "Q", queued.granted, queued.stale);
    if (queued.call.has_value()) add_message(*queued.call);
    for (const WriteSet::Operation& operation : queued.set->operations()) {
      absl::StrAppend(&print, operation.kind, KeyOf(operation.family, operation.key), "=",
                      operation.value);
    }
  }
  // Of what is in memory alone: when each lease and each worker is lost.
  clock_->now = now_;
  for (const v1::Worker& worker : scheduler_->Workers()) {
    absl::StrAppend(&print, DeterministicBytes(worker), "\n");
  }
  for (const std::string& each : acknowledged_) absl::StrAppend(&print, each, ",");
  for (const TaskKey& task : acknowledged_completions_) absl::StrAppend(&print, "C", task.task);
  for (const auto& [token, whom] : told_) absl::StrAppend(&print, "T", token);
  return print;
}

}  // namespace plumbline::server
