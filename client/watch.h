#ifndef PLUMBLINE_CLIENT_WATCH_H_
#define PLUMBLINE_CLIENT_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/session.h"
#include "proto/plumbline/v1/event.pb.h"

namespace plumbline::client {

enum class WatchEnd {
  kFinished,     // the job ended, however it did
  kInterrupted,  // Ctrl-C; the job goes on
  kNeedsMemory,  // it waits for memory that no registered worker has
  kNeedsPlugin,  // it waits for a plug-in that no registered worker has
  kHasNoWorker,  // it waits for a worker other than the one of an embedded service
};

struct WatchResult {
  WatchEnd end = WatchEnd::kFinished;
  // Of the last event that was seen, 0 before the first.
  int64_t last_sequence = 0;
  // kNeedsMemory, kNeedsPlugin, kHasNoWorker: what it needs and what there is.
  std::string message;
};

// Follows a job's events from the one after `after_sequence` until it ends, handing each to
// `on_event` once and in order, over as many connections as that takes. DATA_LOSS where the
// coordinator leaves out a sequence number; NOT_FOUND where it has no such job.
absl::StatusOr<WatchResult> WatchJob(Session* session, const std::string& job,
                                     int64_t after_sequence,
                                     const std::function<void(const v1::JobEvent&)>& on_event);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_WATCH_H_
