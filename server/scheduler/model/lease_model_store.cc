// What becomes durable, is answered, and is left after a crash; and what must hold of it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/proto_util.h"
#include "server/scheduler/model/lease_model.h"

namespace plumbline::server {

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
  store::ShareRecord share;
  share.ParseFromString(Find(Family::kMeta, keys::Share("")));
  scheduler_->RestoreShares({{"", FromDuration(share.used())}});
  scheduler_->EndRestore();
}

void LeaseModel::Break(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

}  // namespace plumbline::server
