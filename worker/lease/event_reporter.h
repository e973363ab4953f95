#ifndef PLUMBLINE_WORKER_LEASE_EVENT_REPORTER_H_
#define PLUMBLINE_WORKER_LEASE_EVENT_REPORTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "proto/plumbline/v1/event.pb.h"
#include "worker/lease/backoff.h"
#include "worker/lease/cancellation.h"
#include "worker/lease/coordinator.h"
#include "worker/lease/held_task.h"

namespace plumbline::worker {

struct EventReporterOptions {
  // What may wait for its acknowledgement; Report() blocks above it.
  size_t max_events = 4096;
  int64_t max_bytes = 8 << 20;
  // Of one stream.
  size_t max_events_per_stream = 1000;
  uint64_t backoff_seed = 0;
};

// Brings the events of one attempt to the coordinator, in order, each exactly once: numbers them,
// sends on a thread of its own what has gathered, and keeps it until it is acknowledged as durable.
// After a broken stream the same events go again under the same numbers, by which the coordinator
// knows what it has. Any thread may call.
class EventReporter {
 public:
  // All must outlive it. Stops `task` when the coordinator says that its lease is lost.
  EventReporter(Coordinator* coordinator, HeldTask* task, Clock* clock,
                const EventReporterOptions& options = {});
  // Drops what is not acknowledged.
  ~EventReporter();
  EventReporter(const EventReporter&) = delete;
  EventReporter& operator=(const EventReporter&) = delete;

  // Takes an event; its time is now unless it is set. Blocks while too much is unacknowledged.
  // Progress that nobody was sent yet is replaced by newer progress. Errors: CANCELLED when the
  // attempt must stop, or what the coordinator refused the events with; the event is dropped then.
  absl::Status Report(v1::JobEvent event);

  // Returns when everything is acknowledged: the number of the last event, 0 if there was none.
  // Goes on after a stop as long as the task may write. Errors as Report's.
  absl::StatusOr<int64_t> Flush();

 private:
  struct Pending {
    int64_t number;
    int64_t size_bytes;
    bool sent;
    v1::JobEvent event;
  };

  void SendLoop();
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::ReportEventsRequest> TakeBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Acknowledge(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Coordinator* const coordinator_;
  HeldTask* const task_;
  Clock* const clock_;
  const EventReporterOptions options_;

  absl::Mutex mutex_;
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_number_ ABSL_GUARDED_BY(mutex_);
  bool must_stop_ ABSL_GUARDED_BY(mutex_) = false;  // The task's work is cancelled.
  bool must_drop_ ABSL_GUARDED_BY(mutex_) = false;  // Nothing may be written, or the destructor.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);    // Why the coordinator takes no more.

  Cancellation stop_sending_;
  Cancellation::Callback on_work_;
  Cancellation::Callback on_writes_;
  std::thread sender_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_EVENT_REPORTER_H_
