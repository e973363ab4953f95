#include "server/access/denied_calls.h"

#include <utility>
#include <vector>

#include "server/proto_util.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kHour = absl::Hours(1);

v1::AuditEvent EventOf(const Caller& caller, const absl::Status& denied, absl::Time now) {
  v1::AuditEvent event;
  *event.mutable_time() = ToTimestamp(now);
  event.set_principal(caller.principal);
  event.set_role(caller.role);
  event.set_method(caller.method);
  event.set_code(static_cast<int>(denied.code()));
  event.set_message(std::string(denied.message()));
  event.set_count(1);
  return event;
}

}  // namespace

void DeniedCalls::Add(const Caller& caller, const absl::Status& denied) {
  const absl::Time now = clock_->Now();
  v1::AuditEvent event = EventOf(caller, denied, now);
  {
    absl::MutexLock lock(&mutex_);
    const auto [entry, is_first] =
        repeats_.try_emplace({caller.principal, caller.method, denied.code()});
    Repeats& repeats = entry->second;
    if (!is_first) {
      // The role, and with it the message, may have changed: what was last counts.
      event.set_count(repeats.event.count() + 1);
      *event.mutable_first_time() =
          repeats.event.count() == 0 ? event.time() : repeats.event.first_time();
      repeats.event = std::move(event);
      return;
    }
    repeats.hour_began = now;
  }
  record_(std::move(event));
}

void DeniedCalls::FlushUntil(absl::Time now) {
  std::vector<v1::AuditEvent> over;
  {
    absl::MutexLock lock(&mutex_);
    for (auto each = repeats_.begin(); each != repeats_.end();) {
      Repeats& repeats = each->second;
      if (now - repeats.hour_began < kHour) {
        ++each;
        continue;
      }
      if (repeats.event.count() == 0) {
        each = repeats_.erase(each);
        continue;
      }
      // They go on: what comes in the next hour is counted too.
      over.push_back(std::exchange(repeats.event, {}));
      repeats.hour_began = now;
      ++each;
    }
  }
  for (v1::AuditEvent& event : over) record_(std::move(event));
}

}  // namespace plumbline::server
