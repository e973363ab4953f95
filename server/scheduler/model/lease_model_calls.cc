// What the coordinator makes of a call when it arrives: in short, what the dispatcher does.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/scheduler/model/lease_model.h"

namespace plumbline::server {
namespace {

std::string ProcessName(int process) { return absl::StrCat("p", process); }

}  // namespace

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

}  // namespace plumbline::server
