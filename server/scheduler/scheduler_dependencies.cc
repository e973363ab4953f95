// Tasks that wait for other jobs: a generation for its gate, and for the one that it is compared
// with; a comparison for what it compares. What ends and who waited for it become durable together,
// so that nobody waits for what is gone.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/scheduler/gate.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {
namespace {

absl::string_view RoleOf(store::Dependency::Use use) {
  switch (use) {
    case store::Dependency::USE_GATE:
      return "the gate";
    case store::Dependency::USE_AGAINST:
      return "the generation to compare with";
    case store::Dependency::USE_TASK:
      return "a task before it";
    default:
      return "an input";
  }
}

}  // namespace

void Scheduler::Block(TaskKey key, const TaskState& task) {
  for (const store::Dependency& each : task.record.waits_for()) {
    blocked_[each.job_number()].insert(key);
  }
}

void Scheduler::Unblock(TaskKey key, const TaskState& task) {
  for (const store::Dependency& each : task.record.waits_for()) {
    const auto waiting = blocked_.find(each.job_number());
    if (waiting == blocked_.end()) continue;
    waiting->second.erase(key);
    if (waiting->second.empty()) blocked_.erase(waiting);
  }
}

void Scheduler::EndRestore() {
  std::vector<int64_t> jobs;
  for (const auto& [job, tasks] : blocked_) jobs.push_back(job);
  for (const int64_t job : jobs) Settle(job);
}

void Scheduler::Settle(int64_t job) {
  if (blocked_.count(job) == 0) return;
  to_settle_.push_back(job);
  // Who fails here may be waited for in turn: chains are followed by this loop, not by recursion.
  if (settling_) return;
  settling_ = true;
  while (!to_settle_.empty()) {
    const int64_t ended = to_settle_.back();
    to_settle_.pop_back();
    const auto waiting = blocked_.find(ended);
    if (waiting == blocked_.end()) continue;
    for (const TaskKey& key : std::set<TaskKey>(waiting->second)) SettleTask(key);
  }
  settling_ = false;
}

void Scheduler::SettleTask(TaskKey key) {
  TaskState* const task = FindTask(key);
  Unblock(key, *task);
  google::protobuf::RepeatedPtrField<store::Dependency> left;
  for (const store::Dependency& each : task->record.waits_for()) {
    const absl::StatusOr<bool> over = Resolve(each, &task->record);
    if (!over.ok()) {
      task->record.clear_waits_for();
      if (IsCancelled(key)) {  // What it waited for in its own job is.
        FinishTask(key, task, v1::JOB_STATE_CANCELLED, jobs_.at(key.job).record.cancel_reason());
      } else {
        *task->record.mutable_task()->mutable_error() = ToRpcStatus(over.status());
        FinishTask(key, task, v1::JOB_STATE_FAILED, over.status().message());
      }
      FinishJobIfDone(key.job);
      return;
    }
    if (!*over) *left.Add() = each;
  }
  if (left.size() == task->record.waits_for_size()) {
    Block(key, *task);
    return;
  }
  changed_tasks_.insert(key);
  *task->record.mutable_waits_for() = std::move(left);
  if (task->record.waits_for().empty()) task->queued_since = clock_->Now();
  Enqueue(key, task);
  AppendTaskState(key, *task, "");
}

absl::StatusOr<bool> Scheduler::Resolve(const store::Dependency& dependency,
                                        store::TaskRecord* record) const {
  const auto found = jobs_.find(dependency.job_number());
  if (found == jobs_.end()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          dependency.job(), ", ", RoleOf(dependency.use()), ", is not live")),
                      "DEPENDENCY_GONE");
  }
  const JobState& job = found->second;
  const bool ended = IsFinal(job.record.job().state());
  switch (dependency.use()) {
    case store::Dependency::USE_GATE: {
      if (!ended) return false;
      std::vector<v1::NumericalIdentity> identities;
      for (const TaskState& task : job.tasks) identities.push_back(task.record.identity());
      PLUMBLINE_ASSIGN_OR_RETURN(*record->mutable_gate_identity(),
                                 CertifiedBy(job.record.job(), identities));
      return true;
    }
    case store::Dependency::USE_AGAINST: {
      const TaskState* const state = FindTask({dependency.job_number(), dependency.task()});
      if (state != nullptr && !IsFinal(state->record.task().state())) return false;
      if (state == nullptr || state->record.task().state() != v1::JOB_STATE_SUCCEEDED ||
          state->record.task().run().empty()) {
        return WithReason(
            absl::FailedPreconditionError(absl::StrCat(
                dependency.job(), "/tasks/", dependency.task(), " did not finish its run")),
            "AGAINST_NOT_FINISHED");
      }
      record->set_against_run(state->record.task().run());
      return true;
    }
    case store::Dependency::USE_TASK: {
      const TaskState* const state = FindTask({dependency.job_number(), dependency.task()});
      if (state != nullptr && !IsFinal(state->record.task().state())) return false;
      if (state != nullptr && state->record.task().state() == v1::JOB_STATE_SUCCEEDED) return true;
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat(dependency.job(), "/tasks/", dependency.task(),
                                                     " did not run to its end")),
          "DEPENDENCY_FAILED");
    }
    default:
      if (!ended) return false;
      if (job.record.job().state() == v1::JOB_STATE_SUCCEEDED) return true;
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat(dependency.job(), " did not run to its end")),
          "DEPENDENCY_FAILED");
  }
}

v1::WaitingReason Scheduler::WhyBlocked(const TaskState& task) const {
  v1::WaitingReason reason;
  reason.set_code(v1::WaitingReason::CODE_DEPENDENCY);
  reason.set_message(absl::StrCat(
      "waits for ", absl::StrJoin(task.record.waits_for(), " and ",
                                  [](std::string* out, const store::Dependency& each) {
                                    absl::StrAppend(out, each.job(), ", ", RoleOf(each.use()));
                                  })));
  return reason;
}

}  // namespace plumbline::server
