#include "server/scheduler/event_hub.h"

namespace plumbline::server {

void EventHub::Subscribe(int64_t job, EventListener* listener) {
  absl::MutexLock lock(&mutex_);
  listeners_[job].insert(listener);
  ++count_;
}

void EventHub::Unsubscribe(int64_t job, EventListener* listener) {
  absl::MutexLock lock(&mutex_);
  const auto found = listeners_.find(job);
  if (found == listeners_.end()) return;
  count_ -= static_cast<int64_t>(found->second.erase(listener));
  if (found->second.empty()) listeners_.erase(found);
}

void EventHub::Notify(const std::vector<int64_t>& jobs) {
  if (jobs.empty()) return;
  absl::MutexLock lock(&mutex_);
  const auto tell = [this](int64_t job) {
    mutex_.AssertHeld();
    const auto found = listeners_.find(job);
    if (found == listeners_.end()) return;
    for (EventListener* const listener : found->second) listener->OnNews();
  };
  for (const int64_t job : jobs) tell(job);
  tell(kAllJobs);
}

void EventHub::NotifyEverybody() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [job, listeners] : listeners_) {
    for (EventListener* const listener : listeners) listener->OnNews();
  }
}

int64_t EventHub::listeners() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

}  // namespace plumbline::server
