// The scheduler's queue: what is ready, for whom, and why the rest is not.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/placement.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {

void Scheduler::Enqueue(TaskKey key, TaskState* task) {
  if (!task->record.waits_for().empty()) {
    Block(key, *task);
  } else if (task->not_before > clock_->Now()) {
    backoffs_.insert({task->not_before, key});
  } else {
    MakeReady(key, task);
  }
}

void Scheduler::MakeReady(TaskKey key, TaskState* task) {
  task->placement = DeterministicBytes(task->record.task().placement());
  PlacementClass& placement = classes_[task->placement];
  if (placement.ready.empty()) {
    placement.needs = task->record.task().placement();
    SetReason(&placement, WhyWaiting(placement.needs, WorkersThatTake()));
  }
  const std::string& group = jobs_.at(key.job).group;
  placement.ready[group].insert({-task->record.spec().priority(), key});
  fair_share_.Wait(group, clock_->Now());
  ++ready_count_;
}

void Scheduler::RemoveFromQueue(TaskKey key, TaskState* task) {
  backoffs_.erase({task->not_before, key});
  Unblock(key, *task);
  const auto placement = classes_.find(task->placement);
  if (placement == classes_.end()) return;
  const std::string& name = jobs_.at(key.job).group;
  const auto group = placement->second.ready.find(name);
  if (group == placement->second.ready.end() ||
      group->second.erase({-task->record.spec().priority(), key}) == 0) {
    return;
  }
  --ready_count_;
  fair_share_.StopWaiting(name);
  if (group->second.empty()) placement->second.ready.erase(group);
  if (placement->second.ready.empty()) classes_.erase(placement);
}

std::optional<TaskKey> Scheduler::FindBest(const WorkerState& worker) const {
  using Rank = std::tuple<int32_t, FairShare::Rank, TaskKey>;
  const v1::Worker& record = worker.record.worker();
  const std::string process = ProcessOf(record.name(), record.incarnation());
  const absl::Time now = clock_->Now();
  std::optional<Rank> best;
  for (const auto& [bytes, placement] : classes_) {
    if (!Fits(placement.needs, record)) continue;
    for (const auto& [group, ready] : placement.ready) {
      if (fair_share_.AtQuota(group)) continue;
      const FairShare::Rank share = fair_share_.RankOf(group, now);
      for (const QueuePosition& position : ready) {
        const Rank rank{position.negative_priority, share, position.key};
        if (best.has_value() && !(rank < *best)) break;
        if (FindTask(position.key)->unsuitable.contains(process)) continue;
        best = rank;
        break;
      }
    }
  }
  if (!best.has_value()) return std::nullopt;
  return std::get<TaskKey>(*best);
}

std::string Scheduler::GroupOf(const TaskState& task) const {
  const auto& labels = task.record.spec().labels();
  const auto label = labels.find(options_.fair_share_label);
  return label == labels.end() ? "" : label->second;
}

std::vector<const v1::Worker*> Scheduler::WorkersThatTake() const {
  std::vector<const v1::Worker*> workers;
  for (const auto& [name, worker] : workers_) {
    if (worker.record.worker().state() == v1::WORKER_STATE_ACTIVE) {
      workers.push_back(&worker.record.worker());
    }
  }
  return workers;
}

v1::WaitingReason Scheduler::WaitingReasonOf(const TaskState& task) const {
  if (!task.record.waits_for().empty()) return WhyBlocked(task);
  v1::WaitingReason reason;
  if (task.not_before > clock_->Now()) {
    reason.set_code(v1::WaitingReason::CODE_BACKOFF);
    reason.set_message(absl::StrCat(
        "is tried again in ",
        absl::FormatDuration(absl::Ceil(task.not_before - clock_->Now(), absl::Seconds(1))),
        " after ", task.record.infrastructure_failures(), " failed attempts"));
    return reason;
  }
  // Of what is ready it is known for all with the same needs together.
  const auto placement = classes_.find(task.placement);
  reason = placement != classes_.end()
               ? placement->second.reason
               : WhyWaiting(task.record.task().placement(), WorkersThatTake());
  if (reason.code() == v1::WaitingReason::CODE_BUSY && fair_share_.AtQuota(GroupOf(task))) {
    reason.set_code(v1::WaitingReason::CODE_QUOTA);
    reason.set_message(absl::StrCat(
        GroupOf(task).empty()
            ? absl::StrCat("jobs without a label ", options_.fair_share_label)
            : absl::StrCat("jobs labelled ", options_.fair_share_label, "=", GroupOf(task)),
        " may run ", fair_share_.QuotaOf(GroupOf(task)), " tasks at once, and do"));
    return reason;
  }
  if (reason.code() != v1::WaitingReason::CODE_BUSY || task.unsuitable.empty()) return reason;
  std::vector<const v1::Worker*> workers = WorkersThatTake();
  workers.erase(std::remove_if(workers.begin(), workers.end(),
                               [&task](const v1::Worker* worker) {
                                 return task.unsuitable.contains(
                                     ProcessOf(worker->name(), worker->incarnation()));
                               }),
                workers.end());
  const bool fits_another = std::any_of(
      workers.begin(), workers.end(),
      [&task](const v1::Worker* worker) { return Fits(task.record.task().placement(), *worker); });
  if (!fits_another) {
    reason.set_code(v1::WaitingReason::CODE_NO_FIT);
    reason.set_message(
        absl::StrCat("every worker that fits handed it back: ", task.unsuitable_message));
  }
  return reason;
}

void Scheduler::RefreshWaitingReasons() {
  if (classes_.empty()) return;
  const std::vector<const v1::Worker*> workers = WorkersThatTake();
  for (auto& [bytes, placement] : classes_) {
    v1::WaitingReason reason = WhyWaiting(placement.needs, workers);
    const bool news =
        reason.code() != placement.reason.code() && reason.code() != v1::WaitingReason::CODE_BUSY;
    SetReason(&placement, std::move(reason));
    if (!news) continue;
    for (const auto& [group, ready] : placement.ready) {
      for (const QueuePosition& position : ready) {
        AppendTaskState(position.key, *FindTask(position.key), "");
      }
    }
  }
}

void Scheduler::SetReason(PlacementClass* placement, v1::WaitingReason reason) {
  if (reason.code() != v1::WaitingReason::CODE_PLUGIN) {
    placement->gives_up = absl::InfiniteFuture();
  } else if (placement->gives_up == absl::InfiniteFuture()) {
    placement->gives_up = clock_->Now() + options_.plugin_patience;
  }
  placement->reason = std::move(reason);
}

void Scheduler::FailWithoutPlugins() {
  std::vector<std::pair<TaskKey, std::string>> given_up;
  for (const auto& [bytes, placement] : classes_) {
    if (placement.gives_up > clock_->Now()) continue;
    for (const auto& [group, ready] : placement.ready) {
      for (const QueuePosition& position : ready) {
        given_up.emplace_back(position.key, placement.reason.message());
      }
    }
  }
  for (const auto& [key, message] : given_up) {
    TaskState* const task = FindTask(key);
    // A task that failed with it may have ended this one.
    if (task == nullptr || IsFinal(task->record.task().state())) continue;
    const absl::Status error = FieldError("composition", message, "plug-ins that a worker has");
    RemoveFromQueue(key, task);
    *task->record.mutable_task()->mutable_error() = ToRpcStatus(error);
    FinishTask(key, task, v1::JOB_STATE_FAILED, error.message());
    FinishJobIfDone(key.job);
  }
}

}  // namespace plumbline::server
