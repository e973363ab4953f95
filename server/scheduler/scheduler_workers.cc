// The scheduler's workers: who is there, what each may be given, and the leases they hold.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/placement.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {
namespace {

// Whether a worker in this state is expected to be heard of.
bool IsPresent(v1::WorkerState state) {
  return state == v1::WORKER_STATE_ACTIVE || state == v1::WORKER_STATE_DRAINING;
}

}  // namespace

void Scheduler::RestoreWorker(store::WorkerRecord record) {
  WorkerState& worker = workers_[record.worker().name()];
  worker.record = std::move(record);
  if (IsPresent(worker.record.worker().state())) Hear(&worker);
}

v1::RegisterWorkerResponse Scheduler::Register(const v1::RegisterWorkerRequest& request) {
  const std::string name = absl::StrCat("workers/", request.worker_id());
  const auto [entry, is_new] = workers_.try_emplace(name);
  WorkerState& worker = entry->second;
  v1::Worker& record = *worker.record.mutable_worker();
  const bool same_process = !is_new && record.incarnation() == request.incarnation();
  if (!is_new && !same_process) {
    LoseTasksOf(&worker, v1::ATTEMPT_END_WORKER_RESTARTED,
                absl::StrCat(name, " started again as another process"));
  }
  if (!same_process) worker.record.set_drain(false);
  record.set_name(name);
  record.set_incarnation(request.incarnation());
  *record.mutable_capabilities() = request.capabilities();
  *record.mutable_labels() = request.labels();
  *record.mutable_register_time() = ToTimestamp(clock_->Now());
  *worker.record.mutable_attempt_labels() = request.attempt_labels();
  Hear(&worker);
  SetWorkerState(&worker, PresentState(worker));
  changed_workers_.insert(name);
  ForgetOldWorkers();
  RefreshWaitingReasons();

  v1::RegisterWorkerResponse response;
  response.set_worker(name);
  *response.mutable_heartbeat_interval() = ToDuration(options_.heartbeat_interval);
  *response.mutable_lease_duration() = ToDuration(options_.lease_duration);
  return response;
}

void Scheduler::ForgetOldWorkers() {
  const absl::Time oldest = clock_->Now() - options_.forget_workers_after;
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const v1::Worker& record = worker->second.record.worker();
    if (IsPresent(record.state()) || FromTimestamp(record.last_heartbeat_time()) > oldest ||
        !worker->second.held.empty()) {
      ++worker;
      continue;
    }
    changes_.DeleteWorker(record.name());
    changed_workers_.erase(record.name());
    worker = workers_.erase(worker);
  }
}

absl::StatusOr<Scheduler::WorkerState*> Scheduler::FindWorker(absl::string_view worker,
                                                              absl::string_view incarnation) {
  const auto found = workers_.find(std::string(worker));
  if (found == workers_.end() || found->second.record.worker().incarnation() != incarnation ||
      found->second.record.worker().state() == v1::WORKER_STATE_GONE) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat(Quoted(worker), " is not registered as incarnation ",
                                       Quoted(incarnation), "; register it")),
                      kWorkerUnknownReason);
  }
  return &found->second;
}

std::string Scheduler::ProcessOf(absl::string_view worker, absl::string_view incarnation) {
  return absl::StrCat(worker, "\n", incarnation);
}

void Scheduler::Hear(WorkerState* worker) {
  const std::string& name = worker->record.worker().name();
  worker_deadlines_.erase({worker->last_heard + options_.lease_duration, name});
  worker->last_heard = clock_->Now();
  worker_deadlines_.insert({worker->last_heard + options_.lease_duration, name});
  if (worker->record.worker().state() == v1::WORKER_STATE_LOST) {
    SetWorkerState(worker, PresentState(*worker));
  }
}

v1::WorkerState Scheduler::PresentState(const WorkerState& worker) {
  return worker.record.drain() ? v1::WORKER_STATE_DRAINING : v1::WORKER_STATE_ACTIVE;
}

void Scheduler::SetWorkerState(WorkerState* worker, v1::WorkerState state) {
  v1::Worker& record = *worker->record.mutable_worker();
  if (record.state() == state) return;
  record.set_state(state);
  *record.mutable_last_heartbeat_time() = ToTimestamp(worker->last_heard);
  if (!IsPresent(state)) {
    worker_deadlines_.erase({worker->last_heard + options_.lease_duration, record.name()});
  }
  changed_workers_.insert(record.name());
  RefreshWaitingReasons();
}

absl::Status Scheduler::HearFrom(absl::string_view name, absl::string_view incarnation) {
  PLUMBLINE_ASSIGN_OR_RETURN(WorkerState* const worker, FindWorker(name, incarnation));
  Hear(worker);
  return absl::OkStatus();
}

absl::StatusOr<v1::AcquireTaskResponse> Scheduler::Acquire(absl::string_view name,
                                                           absl::string_view incarnation) {
  PLUMBLINE_ASSIGN_OR_RETURN(WorkerState* const worker, FindWorker(name, incarnation));
  v1::AcquireTaskResponse response;
  if (worker->record.worker().state() != v1::WORKER_STATE_ACTIVE) {
    response.set_drain(worker->record.drain());
    return response;
  }
  const std::optional<TaskKey> best = FindBest(*worker);
  if (best.has_value()) Grant(worker, *best, response.mutable_assignment());
  return response;
}

bool Scheduler::TakesTasks(absl::string_view worker, absl::string_view incarnation) const {
  const auto found = workers_.find(std::string(worker));
  return found != workers_.end() && found->second.record.worker().incarnation() == incarnation &&
         found->second.record.worker().state() == v1::WORKER_STATE_ACTIVE;
}

void Scheduler::Grant(WorkerState* worker, TaskKey key, v1::Assignment* assignment) {
  TaskState* const task = FindTask(key);
  RemoveFromQueue(key, task);
  const v1::Worker& holder = worker->record.worker();
  v1::Task& record = *task->record.mutable_task();

  v1::Attempt& attempt = *record.add_attempts();
  attempt.set_number(record.attempts_size());
  attempt.set_worker(holder.name());
  attempt.set_incarnation(holder.incarnation());
  attempt.set_fencing_token(++newest_token_);
  *attempt.mutable_start_time() = ToTimestamp(clock_->Now());
  *attempt.mutable_labels() = worker->record.attempt_labels();
  record.set_state(v1::JOB_STATE_RUNNING);
  if (!record.has_start_time()) *record.mutable_start_time() = attempt.start_time();
  task->not_before = absl::InfinitePast();
  task->record.clear_not_before();
  changed_tasks_.insert(key);

  task->lease.emplace();
  store::LeaseRecord& lease = task->lease->record;
  lease.set_fencing_token(newest_token_);
  lease.set_worker(holder.name());
  lease.set_incarnation(holder.incarnation());
  lease.set_attempt(attempt.number());
  task->lease->begun = clock_->Now();
  fair_share_.Begin(jobs_.at(key.job).group, task->lease->begun);
  changes_.GrantLease(key, lease);
  worker->held.insert(key);
  ExtendLease(key, task);
  ++counts_.attempts_started;

  v1::Job& job = *jobs_.at(key.job).record.mutable_job();
  const bool first = job.state() == v1::JOB_STATE_QUEUED;
  if (first) {
    job.set_state(v1::JOB_STATE_RUNNING);
    *job.mutable_start_time() = attempt.start_time();
    changed_jobs_.insert(key.job);
    AppendJobState(key.job);
  }
  AppendAttempt(key, *task);
  AppendTaskState(key, *task, "");

  *assignment->mutable_lease() = ToLease(key, *task);
  *assignment->mutable_spec() = task->record.spec();
  assignment->set_title(record.title());
  assignment->set_next_client_sequence(1);
  if (task->record.has_gate_identity()) {
    *assignment->mutable_gate_identity() = task->record.gate_identity();
  }
  assignment->set_against_run(task->record.against_run());
  *assignment->mutable_sensitivity() = task->record.sensitivity();
}

void Scheduler::ExtendLease(TaskKey key, TaskState* task) {
  lease_deadlines_.erase({task->lease->deadline, key});
  task->lease->deadline = clock_->Now() + options_.lease_duration;
  lease_deadlines_.insert({task->lease->deadline, key});
}

v1::Lease Scheduler::ToLease(TaskKey key, const TaskState& task) const {
  v1::Lease lease;
  lease.set_task(task.record.task().name());
  lease.set_fencing_token(task.lease->record.fencing_token());
  lease.set_attempt(task.lease->record.attempt());
  *lease.mutable_deadline() = ToTimestamp(task.lease->deadline);
  *lease.mutable_remaining() = ToDuration(task.lease->deadline - clock_->Now());
  return lease;
}

absl::StatusOr<v1::HeartbeatResponse> Scheduler::Heartbeat(const v1::HeartbeatRequest& request) {
  PLUMBLINE_ASSIGN_OR_RETURN(WorkerState* const worker,
                             FindWorker(request.worker(), request.incarnation()));
  Hear(worker);
  worker->usage = request.usage();
  if (request.signing_off()) {
    LoseTasksOf(worker, v1::ATTEMPT_END_RELEASED, "the worker signed off");
    SetWorkerState(worker, v1::WORKER_STATE_GONE);
    return v1::HeartbeatResponse();
  }
  if (request.draining()) MarkDraining(worker);

  v1::HeartbeatResponse response;
  const bool drains = worker->record.worker().state() == v1::WORKER_STATE_DRAINING;
  response.set_drain(drains);
  // Tasks by name, since that is what the worker knows.
  std::map<std::string, TaskKey> held;
  for (const TaskKey& key : worker->held) held[FindTask(key)->record.task().name()] = key;
  for (const v1::HeartbeatRequest::Held& each : request.held()) {
    v1::HeartbeatResponse::Directive& directive = *response.add_directives();
    directive.set_task(each.task());
    const auto key = held.find(each.task());
    if (key == held.end() || !CheckLease(key->second, each.fencing_token()).ok()) {
      directive.set_action(v1::HeartbeatResponse::Directive::ACTION_LEASE_LOST);
      continue;
    }
    TaskState* const task = FindTask(key->second);
    ExtendLease(key->second, task);
    if (each.has_progress()) task->progress = each.progress();
    if (!each.run().empty()) {
      PLUMBLINE_RETURN_IF_ERROR(NoteRun(key->second, each.fencing_token(), each.run()));
    }
    *directive.mutable_lease() = ToLease(key->second, *task);
    directive.set_action(IsCancelled(key->second) ? v1::HeartbeatResponse::Directive::ACTION_CANCEL
                         : drains                 ? v1::HeartbeatResponse::Directive::ACTION_RELEASE
                                  : v1::HeartbeatResponse::Directive::ACTION_CONTINUE);
  }
  return response;
}

absl::StatusOr<v1::Worker> Scheduler::Drain(absl::string_view name) {
  const auto worker = workers_.find(std::string(name));
  if (worker == workers_.end()) return GetWorker(name);
  MarkDraining(&worker->second);
  return ToWorker(worker->second);
}

void Scheduler::MarkDraining(WorkerState* worker) {
  if (worker->record.drain()) return;
  worker->record.set_drain(true);
  changed_workers_.insert(worker->record.worker().name());
  // One that is lost drains when it is heard of again.
  if (IsPresent(worker->record.worker().state())) SetWorkerState(worker, PresentState(*worker));
}

absl::StatusOr<v1::Worker> Scheduler::GetWorker(absl::string_view name) const {
  const auto worker = workers_.find(std::string(name));
  if (worker == workers_.end()) {
    return WithReason(absl::NotFoundError(absl::StrCat("there is no worker ", Quoted(name))),
                      "NOT_FOUND");
  }
  return ToWorker(worker->second);
}

std::vector<v1::Worker> Scheduler::Workers() const {
  std::vector<v1::Worker> workers;
  for (const auto& [name, worker] : workers_) workers.push_back(ToWorker(worker));
  return workers;
}

v1::Worker Scheduler::ToWorker(const WorkerState& state) const {
  v1::Worker worker = state.record.worker();
  *worker.mutable_usage() = state.usage;
  if (IsPresent(worker.state())) {
    *worker.mutable_last_heartbeat_time() = ToTimestamp(state.last_heard);
  }
  for (const TaskKey& key : state.held) {
    const TaskState& task = *FindTask(key);
    *worker.add_leases() = ToLease(key, task);
    (*worker.mutable_progress())[task.record.task().name()] = task.progress;
  }
  return worker;
}

void Scheduler::LoseAllLeases(absl::string_view message) {
  std::vector<TaskKey> held;
  for (const auto& [deadline, key] : lease_deadlines_) held.push_back(key);
  for (const TaskKey& key : held) {
    TaskState* const task = FindTask(key);
    ++counts_.leases_lost;
    // The task is not to blame: this does not count against it.
    TryAgain(key, task, EndAttempt(key, task, v1::ATTEMPT_END_LEASE_EXPIRED, message));
  }
}

void Scheduler::LoseTasksOf(WorkerState* worker, v1::AttemptEnd end, absl::string_view message) {
  for (const TaskKey& key : std::set<TaskKey>(worker->held)) {
    TaskState* const task = FindTask(key);
    const LeaseState ended = EndAttempt(key, task, end, message);
    if (end == v1::ATTEMPT_END_RELEASED) {
      ++counts_.tasks_released;
      TryAgain(key, task, ended);
    } else {
      ++counts_.leases_lost;
      TryAgainAfterFailure(key, task, ended);
    }
  }
}

}  // namespace plumbline::server
