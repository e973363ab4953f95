#ifndef PLUMBLINE_SERVER_SCHEDULER_EVENT_HUB_H_
#define PLUMBLINE_SERVER_SCHEDULER_EVENT_HUB_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::server {

// Somebody who reads a log as it grows.
class EventListener {
 public:
  virtual ~EventListener() = default;

  // There is something new to read. Called on the store's thread with the hub locked: must neither
  // block nor call the hub.
  virtual void OnNews() = 0;
};

// Tells watchers that new events are durable. It carries no events: each watcher reads the store
// from where it stands, so that a slow one costs no memory and delays nobody. Any thread may call.
class EventHub {
 public:
  static constexpr int64_t kAllJobs = 0;

  // `listener` hears of one job, or of all, until Unsubscribe returns.
  void Subscribe(int64_t job, EventListener* listener);
  void Unsubscribe(int64_t job, EventListener* listener);

  void Notify(const std::vector<int64_t>& jobs);
  // Makes every listener look, e.g. to find that the server is stopping.
  void NotifyEverybody();

  // How many listen, for metrics.
  int64_t listeners() const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int64_t, absl::flat_hash_set<EventListener*>> listeners_
      ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_EVENT_HUB_H_
