// The dispatcher's side of the workers: long polls, heartbeats, and time.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/dispatcher.h"

namespace plumbline::server {

void Dispatcher::Stop() {
  absl::MutexLock lock(&mutex_);
  polling_stopped_ = true;
  for (Poll& poll : polls_) {
    Answer([done = std::move(poll.done)] { done(v1::AcquireTaskResponse()); });
  }
  polls_.clear();
  polls_by_handle_.clear();
  poll_deadlines_.clear();
}

void Dispatcher::Answer(std::function<void()> answer) { answers_.push_back(std::move(answer)); }

void Dispatcher::RegisterWorker(const Caller& caller, const v1::RegisterWorkerRequest& request,
                                Done<v1::RegisterWorkerResponse> done) {
  absl::MutexLock lock(&mutex_);
  v1::RegisterWorkerResponse response = scheduler_.Register(request);
  CommitChanges(Audit(caller, response.worker()), [done, response](absl::Status status) {
    status.ok() ? done(response) : done(std::move(status));
  });
}

int64_t Dispatcher::AcquireTask(const v1::AcquireTaskRequest& request, absl::Duration wait,
                                Done<v1::AcquireTaskResponse> done) {
  absl::MutexLock lock(&mutex_);
  Poll poll{++newest_handle_, request.worker(), request.incarnation(), clock_->Now() + wait,
            std::move(done)};
  const int64_t handle = poll.handle;
  // A worker that is not known is answered so by TryServe.
  scheduler_.HearFrom(poll.worker, poll.incarnation).IgnoreError();
  if (!TryServe(poll)) {
    if (wait <= absl::ZeroDuration() || polling_stopped_) {
      Answer([done = std::move(poll.done)] { done(v1::AcquireTaskResponse()); });
    } else {
      poll_deadlines_.insert({poll.deadline, handle});
      polls_.push_back(std::move(poll));
      polls_by_handle_[handle] = std::prev(polls_.end());
    }
  }
  // The worker was heard of, which may have brought it back.
  WriteSet set = scheduler_.TakeChanges();
  if (!set.empty()) Commit(std::move(set), nullptr);
  Reschedule();
  return handle;
}

bool Dispatcher::TryServe(const Poll& poll) {
  absl::StatusOr<v1::AcquireTaskResponse> response =
      scheduler_.Acquire(poll.worker, poll.incarnation);
  if (response.ok() && !response->has_assignment() &&
      scheduler_.TakesTasks(poll.worker, poll.incarnation)) {
    return false;
  }
  if (response.ok() && response->has_assignment()) {
    Commit(scheduler_.TakeChanges(), [done = poll.done, response](absl::Status status) {
      status.ok() ? done(response) : done(std::move(status));
    });
  } else {
    Answer([done = poll.done, response] { done(response); });
  }
  return true;
}

void Dispatcher::ServePolls() {
  for (auto poll = polls_.begin(); poll != polls_.end();) {
    if (!scheduler_.HasReadyTasks() && scheduler_.TakesTasks(poll->worker, poll->incarnation)) {
      ++poll;
      continue;
    }
    if (!TryServe(*poll)) {
      ++poll;
      continue;
    }
    poll_deadlines_.erase({poll->deadline, poll->handle});
    polls_by_handle_.erase(poll->handle);
    poll = polls_.erase(poll);
  }
}

void Dispatcher::CancelAcquire(int64_t handle) {
  absl::MutexLock lock(&mutex_);
  const auto found = polls_by_handle_.find(handle);
  if (found == polls_by_handle_.end()) return;
  const auto poll = found->second;
  Answer([done = std::move(poll->done)] { done(absl::CancelledError("the call was cancelled")); });
  poll_deadlines_.erase({poll->deadline, handle});
  polls_.erase(poll);
  polls_by_handle_.erase(found);
}

void Dispatcher::TakeBack(const v1::Lease& lease) {
  v1::ReleaseTaskRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  request.set_reason(v1::RELEASE_REASON_PREEMPTED);
  request.set_message("the worker went away before it had the task");
  ReleaseTask(Caller{"", "", "plumbline.v1.WorkerService/AcquireTask"}, request,
              [](absl::Status) {});
}

void Dispatcher::Heartbeat(const v1::HeartbeatRequest& request, Done<v1::HeartbeatResponse> done) {
  absl::StatusOr<v1::HeartbeatResponse> response;
  {
    absl::MutexLock lock(&mutex_);
    response = scheduler_.Heartbeat(request);
    WriteSet set = scheduler_.TakeChanges();
    if (!set.empty()) {
      Commit(std::move(set), [done, response](absl::Status status) {
        status.ok() ? done(response) : done(std::move(status));
      });
      ServePolls();
      Reschedule();
      return;
    }
  }
  done(std::move(response));
}

void Dispatcher::DrainWorker(const Caller& caller, const std::string& name, std::string reason,
                             Done<v1::Worker> done) {
  absl::StatusOr<v1::Worker> worker;
  {
    absl::MutexLock lock(&mutex_);
    worker = scheduler_.Drain(name);
    if (worker.ok()) {
      CommitChanges(Audit(caller, name, reason), [done, worker](absl::Status status) {
        status.ok() ? done(worker) : done(std::move(status));
      });
      return;
    }
  }
  done(std::move(worker));
}

absl::StatusOr<v1::Worker> Dispatcher::GetWorker(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.GetWorker(name);
}

std::vector<v1::Worker> Dispatcher::Workers() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Workers();
}

absl::Time Dispatcher::NextWake() const {
  absl::Time wake = scheduler_.NextWake();
  if (!poll_deadlines_.empty()) wake = std::min(wake, poll_deadlines_.begin()->first);
  return wake;
}

void Dispatcher::Reschedule() {
  if (NextWake() < timer_until_) timer_moved_ = true;
}

void Dispatcher::TimerLoop() {
  absl::MutexLock lock(&mutex_);
  const auto has_work = [this] {
    mutex_.AssertReaderHeld();
    // Asked whenever somebody lets go of the lock, so that a timer that sleeps too long is woken.
    return stopping_ || timer_moved_ || !answers_.empty() || clock_->Now() >= timer_until_;
  };
  while (!stopping_ || !answers_.empty()) {
    timer_until_ = NextWake();
    timer_moved_ = false;
    clock_->AwaitUntil(&mutex_, absl::Condition(&has_work), timer_until_);
    const absl::Time now = clock_->Now();
    if (scheduler_.NextWake() <= now) {
      scheduler_.Tick();
      WriteSet set = scheduler_.TakeChanges();
      if (!set.empty()) Commit(std::move(set), nullptr);
      ServePolls();
    }
    while (!poll_deadlines_.empty() && poll_deadlines_.begin()->first <= now) {
      const int64_t handle = poll_deadlines_.begin()->second;
      const auto poll = polls_by_handle_.at(handle);
      Answer([done = std::move(poll->done)] { done(v1::AcquireTaskResponse()); });
      poll_deadlines_.erase(poll_deadlines_.begin());
      polls_.erase(poll);
      polls_by_handle_.erase(handle);
    }
    std::vector<std::function<void()>> answers;
    answers.swap(answers_);
    mutex_.Unlock();
    for (const std::function<void()>& answer : answers) answer();
    mutex_.Lock();
  }
}

}  // namespace plumbline::server
