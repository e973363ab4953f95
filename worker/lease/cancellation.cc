#include "worker/lease/cancellation.h"

#include <utility>

namespace plumbline::worker {

void Cancellation::Raise() {
  absl::MutexLock lock(&mutex_);
  if (raised_) return;
  raised_ = true;
  // Under the lock, so that a Callback's destructor waits for its call.
  for (const std::function<void()>& function : callbacks_) function();
}

bool Cancellation::raised() const {
  absl::MutexLock lock(&mutex_);
  return raised_;
}

bool Cancellation::AwaitUntil(Clock* clock, absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  return clock->AwaitUntil(&mutex_, absl::Condition(&raised_), deadline);
}

Cancellation::Callback::Callback(Cancellation* cancellation, std::function<void()> function)
    : cancellation_(cancellation) {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mutex_);
  position_ =
      cancellation_->callbacks_.insert(cancellation_->callbacks_.end(), std::move(function));
  if (cancellation_->raised_) (*position_)();
}

Cancellation::Callback::~Callback() {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mutex_);
  cancellation_->callbacks_.erase(position_);
}

}  // namespace plumbline::worker
