#include "server/scheduler/model/lease_model.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/job_plan.h"

namespace plumbline::server {
namespace {

constexpr int64_t kJob = 1;

std::string WorkerId(int worker) { return worker == 0 ? "a" : "b"; }
std::string WorkerName(int worker) { return absl::StrCat("workers/", WorkerId(worker)); }
std::string ProcessName(int process) { return absl::StrCat("p", process); }

SchedulerOptions Options() {
  SchedulerOptions options;
  options.max_infrastructure_failures = 100;
  options.first_backoff = absl::ZeroDuration();
  options.longest_backoff = absl::ZeroDuration();
  return options;
}

}  // namespace

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

void LeaseModel::Deliver(Message message) {
  Scheduler* const scheduler = Change();
  const std::string name = WorkerName(message.worker);
  const std::string process = ProcessName(message.process);
  Queued queued;
  queued.call = message;
  switch (message.call) {
    case Call::kRegister: {
      v1::RegisterWorkerRequest request;
      request.set_worker_id(WorkerId(message.worker));
      request.set_incarnation(process);
      request.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
      scheduler->Register(request);
      Commit(scheduler->TakeChanges(), std::move(queued));
      return;
    }
    case Call::kAcquire: {
      scheduler->HearFrom(name, process).IgnoreError();
      const absl::StatusOr<v1::AcquireTaskResponse> answer = scheduler->Acquire(name, process);
      WriteSet set = scheduler->TakeChanges();
      if (!answer.ok() || !answer->has_assignment()) {
        if (!set.empty()) Commit(std::move(set), {});
        Worker& worker = workers_[message.worker];
        if (worker.process != message.process) return;
        worker.calling = false;
        // It is told to register again.
        if (!answer.ok()) worker.registered = false;
        return;
      }
      queued.granted = answer->assignment().lease().fencing_token();
      queued.task = set.lease_changes().front().task;
      if (bug_ == PlantedBug::kAnswerBeforeSync) {
        Grant(message, queued.task, queued.granted);
        queued.call.reset();
      }
      Commit(std::move(set), std::move(queued));
      return;
    }
    default:
      DeliverWrite(message);
  }
}

void LeaseModel::DeliverWrite(const Message& message) {
  Scheduler* const scheduler = scheduler_.get();  // Deliver's copy.
  Queued queued;
  queued.call = message;
  absl::Status status = fence_.Check(message.task, message.token);
  int64_t token = message.token;
  if (bug_ == PlantedBug::kCompleteUnderAnyToken && message.call == Call::kComplete) {
    token = DurableToken(message.task);
    status = fence_.Check(message.task, token);
  }
  WriteSet set;
  switch (message.call) {
    case Call::kBeginStep:
      if (status.ok())
        workers_[message.worker].uploading |= workers_[message.worker].process == message.process &&
                                              workers_[message.worker].token == message.token;
      Finish(message, !status.ok());
      return;
    case Call::kCommitStep: {
      v1::StepRecord step;
      step.set_index(static_cast<int32_t>(message.token));
      if (bug_ != PlantedBug::kUnfencedCommit) set.RequireLease(message.task, message.token);
      set.PutStep("run", step);
      break;
    }
    case Call::kEvent:
      if (status.ok()) {
        status = scheduler->AcceptEvents(message.task, message.token, 1, 1, nullptr).status();
      }
      if (status.ok()) set = scheduler->TakeChanges();
      break;
    case Call::kComplete:
      if (status.ok()) status = scheduler->Complete(message.task, token, v1::TaskReport());
      if (status.ok()) set = scheduler->TakeChanges();
      break;
    default: {
      v1::ReleaseTaskRequest request;
      request.set_fencing_token(message.token);
      if (status.ok()) status = scheduler->Release(request, message.task);
      if (status.ok()) set = scheduler->TakeChanges();
      break;
    }
  }
  if (message.call == Call::kComplete && !status.ok()) {
    // Perhaps it is the same call again, which is known once what is queued is durable.
    queued.stale = true;
    Commit(WriteSet(), std::move(queued));
    return;
  }
  const bool fenced = message.call == Call::kCommitStep;
  if (fenced ? !Commit(std::move(set), queued) : !status.ok()) {
    refused_ = true;
    Finish(message, /*lease_lost=*/true);
    return;
  }
  if (!fenced) Commit(std::move(set), std::move(queued));
}

void LeaseModel::Finish(const Message& message, bool lease_lost) {
  Worker& worker = workers_[message.worker];
  if (worker.process != message.process) return;
  worker.calling = false;
  if (lease_lost && worker.token == message.token) {
    worker.token = 0;
    worker.uploading = false;
  }
}

bool LeaseModel::Commit(WriteSet set, Queued queued) {
  const absl::Status admitted = fence_.Admit(set);
  const bool blind = bug_ == PlantedBug::kTokensNotDurable && absl::IsInternal(admitted);
  if (absl::IsInternal(admitted) && !blind) Break(std::string(admitted.message()));
  if (!admitted.ok() && !blind) return false;
  queued.set = std::make_shared<const WriteSet>(std::move(set));
  queue_.push_back(std::move(queued));
  return true;
}

void LeaseModel::Sync(bool answer_arrives) {
  const Queued queued = queue_.front();
  queue_.pop_front();
  Apply(queued);
  if (!queued.call.has_value()) return;
  if (answer_arrives) {
    Answer(queued);
  } else {
    Finish(*queued.call, /*lease_lost=*/false);
  }
}

std::string LeaseModel::KeyOf(Family family, const std::string& key) {
  return absl::StrCat(static_cast<int>(family), "/", key);
}

std::string LeaseModel::Find(Family family, const std::string& key) const {
  const auto found = durable_->find(KeyOf(family, key));
  return found == durable_->end() ? "" : found->second;
}

int64_t LeaseModel::DurableToken(TaskKey task) const {
  store::LeaseRecord lease;
  lease.ParseFromString(Find(Family::kLeases, keys::Lease(task)));
  return lease.fencing_token();
}

bool LeaseModel::IsDone(TaskKey task, int64_t token) const {
  store::TaskRecord record;
  record.ParseFromString(Find(Family::kJobs, keys::Task(task)));
  const auto& attempts = record.task().attempts();
  return std::any_of(attempts.begin(), attempts.end(), [token](const v1::Attempt& attempt) {
    return attempt.fencing_token() == token && attempt.end() == v1::ATTEMPT_END_COMPLETED;
  });
}

// What must hold of a change at the moment it becomes durable.
void LeaseModel::CheckApplied(const Queued& queued) {
  if (queued.granted != 0) {
    const int64_t newest = keys::TrailingNumber(Find(Family::kLeases, keys::FencingToken()));
    if (queued.granted <= newest) {
      Break(absl::StrCat("token ", queued.granted, " is granted after ", newest));
    }
    if (!Find(Family::kJobs, keys::Report(queued.task)).empty() ||
        acknowledged_completions_.count(queued.task) > 0) {
      Break("a task that is done is given to a worker");
    }
  }
  if (!queued.call.has_value() || queued.stale || queued.call->token == 0) return;
  if (DurableToken(queued.call->task) != queued.call->token) {
    Break(absl::StrCat("a stale ", NameOf(queued.call->call), " under token ", queued.call->token,
                       " is accepted; the newest is ", DurableToken(queued.call->task)));
  }
}

void LeaseModel::Apply(const Queued& queued) {
  CheckApplied(queued);
  auto database = std::make_shared<Database>(*durable_);
  for (const WriteSet::Operation& operation : queued.set->operations()) {
    const std::string key = KeyOf(operation.family, operation.key);
    if (operation.kind == WriteSet::Operation::kPut) {
      // A report is written once: not again, and not by another.
      if (operation.family == Family::kJobs && operation.key[0] == 'r') ++completed_;
      (*database)[key] = operation.value;
    } else if (operation.kind == WriteSet::Operation::kDelete) {
      database->erase(key);
    }
  }
  durable_ = std::move(database);
  if (completed_ > 1) Break("one task is completed twice");
}

void LeaseModel::Answer(const Queued& queued) {
  const Message& call = *queued.call;
  Worker& worker = workers_[call.worker];
  const bool is_there = worker.process == call.process;
  switch (call.call) {
    case Call::kRegister:
      if (is_there) worker.registered = true;
      Finish(call, false);
      break;
    case Call::kAcquire:
      Grant(call, queued.task, queued.granted);
      break;
    case Call::kComplete: {
      const bool done = !queued.stale || IsDone(call.task, call.token);
      if (done) {
        acknowledged_completions_.insert(call.task);
        if (!IsDone(call.task, call.token)) Break("a completion is acknowledged that is not there");
      } else {
        refused_ = true;
      }
      Finish(call, /*lease_lost=*/true);  // Either way it holds nothing any more.
      break;
    }
    case Call::kRelease:
      Finish(call, true);
      break;
    default: {
      acknowledged_.insert(absl::StrCat(NameOf(call.call), call.token));
      if (call.call == Call::kCommitStep && is_there) worker.uploading = false;
      Finish(call, false);
      break;
    }
  }
  for (const std::string& each : acknowledged_) {
    const bool is_step = each.substr(0, each.find_first_of("0123456789")) == "commit step";
    const int64_t token = std::stoll(each.substr(each.find_first_of("0123456789")));
    if (is_step && Find(Family::kSteps, keys::Step("run", static_cast<int32_t>(token))).empty()) {
      Break("a step that was acknowledged is gone");
    }
  }
  for (const TaskKey& task : acknowledged_completions_) {
    if (Find(Family::kJobs, keys::Report(task)).empty()) {
      Break("a verdict that was acknowledged is gone");
    }
  }
}

void LeaseModel::Grant(const Message& call, TaskKey task, int64_t token) {
  const std::pair<int, int> whom{call.worker, call.process};
  const auto [told, is_new] = told_.try_emplace(token, whom);
  if (!is_new) Break(absl::StrCat("token ", token, " is given to two"));
  Worker& worker = workers_[call.worker];
  // Whoever gave the call up knows nothing of it.
  if (worker.process != call.process || !worker.calling) return;
  worker.calling = false;
  worker.task = task;
  worker.token = token;
  worker.uploading = false;
}

void LeaseModel::Crash() {
  queue_.clear();
  clock_->now = now_;
  scheduler_ = std::make_shared<Scheduler>(clock_, Options());
  fence_ = LeaseTable();
  resumed_ = true;
  const int64_t newest = keys::TrailingNumber(Find(Family::kLeases, keys::FencingToken()));
  if (bug_ != PlantedBug::kTokensNotDurable) {
    scheduler_->RestoreFencingToken(newest);
    fence_.RestoreNewest(newest);
  }
  for (int i = 0; i < 2; ++i) {
    store::WorkerRecord record;
    record.ParseFromString(Find(Family::kMeta, keys::Worker(WorkerName(i))));
    if (record.has_worker()) scheduler_->RestoreWorker(std::move(record));
    workers_[i].calling = false;  // Its connection broke.
  }
  store::JobRecord job;
  job.ParseFromString(Find(Family::kJobs, keys::Job(kJob)));
  if (IsFinal(job.job().state())) return;
  constexpr TaskKey kTask{kJob, 0};
  std::vector<store::TaskRecord> tasks(1);
  tasks[0].ParseFromString(Find(Family::kJobs, keys::Task(kTask)));
  scheduler_->RestoreJob(kJob, std::move(job), std::move(tasks));
  store::LeaseRecord lease;
  lease.ParseFromString(Find(Family::kLeases, keys::Lease(kTask)));
  if (lease.fencing_token() != 0) {
    scheduler_->RestoreLease(kTask, lease, 0, 0);
    fence_.Restore(kTask, lease.fencing_token());
  }
  scheduler_->EndRestore();
}

void LeaseModel::Break(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
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

Exploration Explore(ModelLimits limits, PlantedBug bug, int64_t max_states) {
  struct Node {
    LeaseModel model;
    int64_t step;  // In `steps`.
  };
  struct Step {
    int64_t parent;
    std::string action;
  };
  ModelClock clock;
  Exploration result;
  std::vector<Step> steps;
  std::deque<Node> open;
  absl::flat_hash_set<size_t> seen;
  open.push_back({LeaseModel(&clock, limits, bug), -1});
  seen.insert(absl::HashOf(open.front().model.Fingerprint()));
  while (!open.empty()) {
    const Node node = std::move(open.front());
    open.pop_front();
    ++result.states;
    result.completed += node.model.has_completed() ? 1 : 0;
    result.refused += node.model.has_refused() ? 1 : 0;
    result.resumed += node.model.has_resumed() ? 1 : 0;
    const std::vector<std::string> actions = node.model.Actions();
    for (size_t i = 0; i < actions.size(); ++i) {
      LeaseModel next = node.model;
      next.Take(i);
      ++result.transitions;
      if (!next.violation().empty()) {
        result.violation = next.violation();
        result.trace = {actions[i]};
        for (int64_t step = node.step; step >= 0; step = steps[step].parent) {
          result.trace.insert(result.trace.begin(), steps[step].action);
        }
        return result;
      }
      if (!seen.insert(absl::HashOf(next.Fingerprint())).second) continue;
      if (static_cast<int64_t>(seen.size()) > max_states) return result;
      steps.push_back({node.step, actions[i]});
      open.push_back({std::move(next), static_cast<int64_t>(steps.size()) - 1});
    }
  }
  result.complete = true;
  return result;
}

}  // namespace plumbline::server
