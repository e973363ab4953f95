// What the scheduler notes of generations while they run: their runs, and their steps.
#include <optional>
#include <string>

#include "common/status.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {

absl::Status Scheduler::NoteRun(TaskKey key, int64_t token, const std::string& run) {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, token));
  v1::Task& task = *FindTask(key)->record.mutable_task();
  if (task.run() == run) return absl::OkStatus();
  task.set_run(run);
  changed_tasks_.insert(key);
  return absl::OkStatus();
}

void Scheduler::CountStep(TaskKey key, const v1::StepEvent& step) {
  TaskState* const task = FindTask(key);
  if (task == nullptr || !task->lease.has_value() ||
      !task->lease->counted_steps.insert({step.step(), step.origin()}).second) {
    return;
  }
  task->lease->saved_steps.erase(step.step());
  v1::Attempt& attempt = *task->record.mutable_task()->mutable_attempts()->rbegin();
  switch (step.origin()) {
    case v1::STEP_ORIGIN_COMPUTED:
      attempt.set_steps_computed(attempt.steps_computed() + 1);
      break;
    case v1::STEP_ORIGIN_REPLAYED:
      attempt.set_steps_replayed(attempt.steps_replayed() + 1);
      break;
    case v1::STEP_ORIGIN_RECOMPUTED:
      attempt.set_steps_recomputed(attempt.steps_recomputed() + 1);
      break;
    default:
      return;
  }
  changed_tasks_.insert(key);
}

void Scheduler::NoteSavedStep(TaskKey key, int64_t token, std::optional<int32_t> step) {
  if (!CheckLease(key, token).ok()) return;
  TaskState* const task = FindTask(key);
  LeaseState& lease = *task->lease;
  const auto is_counted = [&](v1::StepOrigin origin) {
    return lease.counted_steps.count({*step, origin}) > 0;
  };
  if (step.has_value() && !is_counted(v1::STEP_ORIGIN_COMPUTED) &&
      !is_counted(v1::STEP_ORIGIN_RECOMPUTED)) {
    lease.saved_steps.insert(*step);
  }
  if (task->record.infrastructure_failures() == 0) return;
  task->record.set_infrastructure_failures(0);
  changed_tasks_.insert(key);
}

void Scheduler::NoteSensitivity(TaskKey key, const v1::SensitivityCheck& check) {
  TaskState* const task = FindTask(key);
  if (task == nullptr) return;
  for (const v1::SensitivityCheck& known : task->record.sensitivity()) {
    if (known.input() == check.input()) return;
  }
  *task->record.add_sensitivity() = check;
  changed_tasks_.insert(key);
}

void Scheduler::CountSteps(const v1::Task& task, v1::GenerationReport* report) {
  report->clear_steps_computed();
  report->clear_steps_replayed();
  report->clear_steps_recomputed();
  for (const v1::Attempt& attempt : task.attempts()) {
    report->set_steps_computed(report->steps_computed() + attempt.steps_computed());
    report->set_steps_replayed(report->steps_replayed() + attempt.steps_replayed());
    report->set_steps_recomputed(report->steps_recomputed() + attempt.steps_recomputed());
  }
}

}  // namespace plumbline::server
