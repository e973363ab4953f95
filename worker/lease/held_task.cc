#include "worker/lease/held_task.h"

#include <algorithm>

namespace plumbline::worker {

void HeldTask::Stop(StopReason reason) {
  if (reason == StopReason::kNone) return;
  {
    absl::MutexLock lock(&mutex_);
    stop_reason_ = std::max(stop_reason_, reason);
  }
  // `writes` first: whoever sees `work` raised then sees whether it may still write.
  if (reason == StopReason::kLeaseLost) writes_.Raise();
  work_.Raise();
}

StopReason HeldTask::stop_reason() const {
  absl::MutexLock lock(&mutex_);
  return stop_reason_;
}

void HeldTask::AskToYield() {
  absl::MutexLock lock(&mutex_);
  asked_to_yield_ = true;
}

bool HeldTask::asked_to_yield() const {
  absl::MutexLock lock(&mutex_);
  return asked_to_yield_;
}

void HeldTask::SetProgress(const v1::Progress& progress) {
  absl::MutexLock lock(&mutex_);
  progress_ = progress;
}

std::optional<v1::Progress> HeldTask::progress() const {
  absl::MutexLock lock(&mutex_);
  return progress_;
}

void HeldTask::SetRun(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  run_ = run;
}

std::string HeldTask::run() const {
  absl::MutexLock lock(&mutex_);
  return run_;
}

}  // namespace plumbline::worker
