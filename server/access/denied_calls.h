#ifndef PLUMBLINE_SERVER_ACCESS_DENIED_CALLS_H_
#define PLUMBLINE_SERVER_ACCESS_DENIED_CALLS_H_

#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "server/caller.h"

namespace plumbline::server {

// What the audit log gets of calls that a role was too small for. It keeps a number of events, and
// the oldest go: whoever may do nothing but be refused must not push out what others did. So the
// first refusal of a principal, a method and a code is an event at once, and those of the hour that
// follows are one together, with their count. Any thread may call.
class DeniedCalls {
 public:
  // `record` gets the events; must not block. `clock` must outlive it.
  DeniedCalls(Clock* clock, std::function<void(v1::AuditEvent)> record)
      : clock_(clock), record_(std::move(record)) {}

  void Add(const Caller& caller, const absl::Status& denied);
  // Records the counts whose hour is over. Every second or so.
  void Flush() { FlushUntil(clock_->Now()); }
  // Records all counts. Before the end.
  void FlushAll() { FlushUntil(absl::InfiniteFuture()); }

 private:
  // Of a principal, a method and a code: as many as there are tokens and methods at most.
  struct Repeats {
    absl::Time hour_began;
    v1::AuditEvent event;  // Of those that are counted; count 0: none.
  };
  using Key = std::tuple<std::string, std::string, absl::StatusCode>;

  void FlushUntil(absl::Time now);

  Clock* const clock_;
  const std::function<void(v1::AuditEvent)> record_;
  absl::Mutex mutex_;
  std::map<Key, Repeats> repeats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_DENIED_CALLS_H_
