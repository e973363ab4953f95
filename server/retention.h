#ifndef PLUMBLINE_SERVER_RETENTION_H_
#define PLUMBLINE_SERVER_RETENTION_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/scheduler/dispatcher.h"
#include "server/store/artifact_files.h"
#include "server/store/store.h"

namespace plumbline::server {

struct RetentionOptions {
  // Jobs that ended so long ago go, with reports, events and artifacts. Infinite: none.
  absl::Duration keep_jobs = absl::InfiniteDuration();
  // Of jobs that ended so long ago all events but the last go. Infinite: none.
  absl::Duration keep_events = absl::InfiniteDuration();
  absl::Duration interval = absl::Hours(1);
};

// Deletes what has been kept long enough: once when it starts, then every interval, on a thread of
// its own.
class Retention {
 public:
  // All must outlive it.
  Retention(Clock* clock, Store* store, Dispatcher* dispatcher, ArtifactFiles* files,
            RetentionOptions options);
  // Ends what is under way.
  ~Retention();

 private:
  void Loop();
  bool stopping() const;
  absl::Status TrimEvents(absl::Time end);
  absl::Status DeleteJobs(absl::Time end);
  absl::Status DeleteJob(int64_t number);

  Clock* const clock_;
  Store* const store_;
  Dispatcher* const dispatcher_;
  ArtifactFiles* const files_;
  const RetentionOptions options_;

  // The last job whose events are trimmed. Of the thread alone.
  Store::FinishedJob trimmed_{absl::UnixEpoch(), 0};
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_RETENTION_H_
