// What the scheduler's transitions leave behind: events, and the records that changed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/proto_util.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {
v1::JobEvent Scheduler::NewEvent(int64_t job) const {
  v1::JobEvent event;
  event.set_job(jobs_.at(job).record.job().name());
  *event.mutable_time() = ToTimestamp(clock_->Now());
  return event;
}

void Scheduler::AppendJobState(int64_t number) {
  const v1::Job& job = jobs_.at(number).record.job();
  v1::JobEvent event = NewEvent(number);
  v1::JobStateEvent& body = *event.mutable_job_state();
  body.set_state(job.state());
  if (IsFinal(job.state())) *body.mutable_verdict() = job.verdict();
  if (job.state() == v1::JOB_STATE_FAILED) body.set_message(job.error().message());
  changes_.AppendEvent(number, std::move(event));
}

void Scheduler::AppendTaskState(TaskKey key, const TaskState& task, absl::string_view message) {
  const v1::Task& record = task.record.task();
  v1::JobEvent event = NewEvent(key.job);
  event.set_task(record.name());
  if (!record.attempts().empty()) event.set_attempt(record.attempts().rbegin()->number());
  v1::TaskStateEvent& body = *event.mutable_task_state();
  body.set_state(record.state());
  body.set_title(record.title());
  body.set_message(std::string(message));
  if (record.state() == v1::JOB_STATE_QUEUED) {
    *body.mutable_waiting_reason() = WaitingReasonOf(task);
  }
  if (record.state() == v1::JOB_STATE_SUCCEEDED) *body.mutable_verdict() = record.verdict();
  changes_.AppendEvent(key.job, std::move(event));
}

void Scheduler::AppendAttempt(TaskKey key, const TaskState& task) {
  const v1::Task& record = task.record.task();
  v1::JobEvent event = NewEvent(key.job);
  event.set_task(record.name());
  event.set_attempt(record.attempts().rbegin()->number());
  *event.mutable_attempt_change() = *record.attempts().rbegin();
  changes_.AppendEvent(key.job, std::move(event));
}

void Scheduler::AppendSuperseded(TaskKey key, const LeaseState& lease) {
  if (lease.first_sequence == 0) return;
  v1::JobEvent event = NewEvent(key.job);
  event.set_task(FindTask(key)->record.task().name());
  v1::AttemptSupersededEvent& body = *event.mutable_attempt_superseded();
  body.set_superseded_attempt(lease.record.attempt());
  body.set_first_sequence(lease.first_sequence);
  body.set_last_sequence(lease.last_sequence);
  changes_.AppendEvent(key.job, std::move(event));
}

void Scheduler::AppendReportReady(int64_t job, absl::string_view task_name,
                                  const v1::Verdict& verdict) {
  v1::JobEvent event = NewEvent(job);
  event.set_task(std::string(task_name));
  event.mutable_report_ready()->set_name(task_name.empty() ? event.job() : std::string(task_name));
  *event.mutable_report_ready()->mutable_verdict() = verdict;
  changes_.AppendEvent(job, std::move(event));
}

v1::Progress Scheduler::ProgressOf(const JobState& job) const {
  v1::Progress progress;
  if (job.tasks.size() == 1 && job.tasks[0].lease.has_value()) return job.tasks[0].progress;
  progress.set_unit("tasks");
  progress.set_total(static_cast<int64_t>(job.tasks.size()));
  progress.set_done(std::count_if(job.tasks.begin(), job.tasks.end(), [](const TaskState& task) {
    return IsFinal(task.record.task().state());
  }));
  for (const TaskState& task : job.tasks) {
    if (!task.lease.has_value() || task.progress.activity().empty()) continue;
    progress.set_activity(absl::StrCat(task.record.task().title(), ": ", task.progress.activity()));
    break;
  }
  return progress;
}

std::vector<std::string> Scheduler::JobsNeeding(const v1::Run& run) const {
  const auto needs = [&run](const TaskState& task) {
    const v1::JobSpec& spec = task.record.spec();
    // What a run was decoded to is needed as long as it is.
    if (!run.decode_of().empty() &&
        (task.record.task().run() == run.decode_of() || spec.decode().run() == run.decode_of())) {
      return true;
    }
    if (task.record.task().run() == run.name() || task.record.against_run() == run.name() ||
        spec.diagnostic().run() == run.name() || spec.decode().run() == run.name() ||
        spec.comparison().runs().a() == run.name() || spec.comparison().runs().b() == run.name()) {
      return true;
    }
    return spec.has_generation() && task.record.task().run().empty() &&
           spec.generation().seeds_size() == 1 && spec.generation().seeds(0) == run.seed();
  };
  std::vector<std::string> names;
  for (const auto& [number, job] : jobs_) {
    if (std::any_of(job.tasks.begin(), job.tasks.end(), needs)) {
      names.push_back(job.record.job().name());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Scheduler::AddPresentState(int64_t number, v1::Job* job) const {
  const auto state = jobs_.find(number);
  if (state == jobs_.end()) return;
  *job->mutable_progress() = ProgressOf(state->second);
  const std::vector<TaskState>& tasks = state->second.tasks;
  const bool any_held = std::any_of(tasks.begin(), tasks.end(),
                                    [](const TaskState& task) { return task.lease.has_value(); });
  const auto waits = std::find_if(tasks.begin(), tasks.end(), [](const TaskState& task) {
    return task.record.task().state() == v1::JOB_STATE_QUEUED;
  });
  if (!any_held && waits != tasks.end()) {
    *job->mutable_waiting_reason() = WaitingReasonOf(*waits);
  }
  for (int i = 0; i < job->tasks_size(); ++i) {
    v1::Task* const task = job->mutable_tasks(i);
    *task->mutable_progress() = tasks[i].progress;
    if (task->state() == v1::JOB_STATE_QUEUED &&
        tasks[i].record.task().state() == v1::JOB_STATE_QUEUED) {
      *task->mutable_waiting_reason() = WaitingReasonOf(tasks[i]);
    }
  }
}

WriteSet Scheduler::TakeChanges() {
  for (const TaskKey& key : changed_tasks_) changes_.PutTask(key, FindTask(key)->record);
  for (const int64_t number : changed_jobs_) {
    const auto job = jobs_.find(number);
    const bool live = !IsFinal(job->second.record.job().state());
    changes_.PutJob(number, job->second.record, live);
    if (!live) {
      live_tasks_ -= static_cast<int64_t>(job->second.tasks.size());
      jobs_.erase(job);
    }
  }
  for (const std::string& name : changed_workers_) changes_.PutWorker(workers_.at(name).record);
  for (const auto& [group, used] : fair_share_.TakeChanges()) {
    used.has_value() ? changes_.PutShare(group, *used) : changes_.DeleteShare(group);
  }
  changed_tasks_.clear();
  changed_jobs_.clear();
  changed_workers_.clear();
  return std::exchange(changes_, WriteSet());
}

SchedulerLoad Scheduler::Load() const {
  SchedulerLoad load;
  for (const auto& [number, job] : jobs_) {
    for (const TaskState& task : job.tasks) {
      if (task.lease.has_value()) {
        ++load.running;
      } else if (task.record.task().state() != v1::JOB_STATE_QUEUED) {
        continue;
      } else if (!task.record.waits_for().empty()) {
        ++load.blocked;
      } else if (task.not_before > clock_->Now()) {
        ++load.backing_off;
      } else {
        ++load.ready;
        load.oldest_queued = std::min(load.oldest_queued, task.queued_since);
      }
    }
  }
  for (const auto& [name, worker] : workers_) ++load.workers[worker.record.worker().state()];
  return load;
}

}  // namespace plumbline::server
