#include "worker/lease/event_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "worker/proto_time.h"

namespace plumbline::worker {
namespace {

// A message of the stream holds at most 1 MiB, framing included.
constexpr int64_t kMaxMessageBytes = 1 << 20;
constexpr int64_t kMaxEventBytes = kMaxMessageBytes - 4096;
// Number, length and tag of an event within its message.
constexpr int64_t kFramingBytes = 32;

constexpr absl::Duration kTimeout = absl::Seconds(30);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(3);

}  // namespace

EventReporter::EventReporter(Coordinator* coordinator, HeldTask* task, Clock* clock,
                             const EventReporterOptions& options)
    : coordinator_(coordinator),
      task_(task),
      clock_(clock),
      options_(options),
      next_number_(std::max<int64_t>(task->assignment().next_client_sequence(), 1)),
      on_work_(task->work(),
               [this] {
                 absl::MutexLock lock(&mutex_);
                 must_stop_ = true;
               }),
      on_writes_(task->writes(),
                 [this] {
                   {
                     absl::MutexLock lock(&mutex_);
                     must_drop_ = true;
                   }
                   stop_sending_.Raise();
                 }),
      sender_([this] { SendLoop(); }) {}

EventReporter::~EventReporter() {
  {
    absl::MutexLock lock(&mutex_);
    must_drop_ = true;
  }
  stop_sending_.Raise();
  sender_.join();
}

bool EventReporter::HasRoom() const {
  return pending_.size() < options_.max_events && pending_bytes_ < options_.max_bytes;
}

absl::Status EventReporter::Report(v1::JobEvent event) {
  if (!event.has_time()) *event.mutable_time() = ToTimestamp(clock_->Now());
  if (event.has_progress()) task_->SetProgress(event.progress());
  const int64_t size_bytes = static_cast<int64_t>(event.ByteSizeLong()) + kFramingBytes;
  if (size_bytes > kMaxEventBytes) {
    return absl::InternalError(absl::StrCat("an event of ", size_bytes, " bytes; at most ",
                                            kMaxEventBytes, " can be reported"));
  }

  absl::MutexLock lock(&mutex_);
  const auto replaces_last = [this, &event]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return event.has_progress() && !pending_.empty() && !pending_.back().sent &&
           pending_.back().event.has_progress();
  };
  const auto can_go_on = [this, &replaces_last]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return HasRoom() || replaces_last() || must_stop_ || must_drop_ || !failure_.ok();
  };
  mutex_.Await(absl::Condition(&can_go_on));
  if (!failure_.ok()) return failure_;
  if (must_stop_ || must_drop_) return absl::CancelledError("the attempt must stop");
  if (replaces_last()) {
    pending_bytes_ += size_bytes - pending_.back().size_bytes;
    pending_.back().size_bytes = size_bytes;
    pending_.back().event = std::move(event);
    return absl::OkStatus();
  }
  pending_bytes_ += size_bytes;
  pending_.push_back({next_number_++, size_bytes, /*sent=*/false, std::move(event)});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> EventReporter::Flush() {
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pending_.empty() || must_drop_ || !failure_.ok();
  };
  mutex_.Await(absl::Condition(&done));
  if (!failure_.ok()) return failure_;
  if (!pending_.empty()) return absl::CancelledError("the attempt may write no more events");
  return next_number_ - 1;
}

std::vector<v1::ReportEventsRequest> EventReporter::TakeBatch() {
  std::vector<v1::ReportEventsRequest> messages;
  int64_t message_bytes = 0;
  size_t count = 0;
  for (Pending& pending : pending_) {
    if (count == options_.max_events_per_stream) break;
    if (messages.empty() || message_bytes + pending.size_bytes > kMaxEventBytes) {
      messages.emplace_back();
      messages.back().set_task(task_->name());
      messages.back().set_fencing_token(task_->fencing_token());
      message_bytes = 0;
    }
    auto* const numbered = messages.back().add_events();
    numbered->set_client_sequence(pending.number);
    *numbered->mutable_event() = pending.event;
    message_bytes += pending.size_bytes;
    pending.sent = true;
    ++count;
  }
  return messages;
}

void EventReporter::Acknowledge(int64_t number) {
  while (!pending_.empty() && pending_.front().number <= number) {
    pending_bytes_ -= pending_.front().size_bytes;
    pending_.pop_front();
  }
}

void EventReporter::SendLoop() {
  Backoff backoff(kFirstRetry, kLongestRetry, options_.backoff_seed);
  while (true) {
    std::vector<v1::ReportEventsRequest> messages;
    {
      absl::MutexLock lock(&mutex_);
      const auto something_to_do = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !pending_.empty() || must_drop_;
      };
      mutex_.Await(absl::Condition(&something_to_do));
      if (must_drop_) return;
      messages = TakeBatch();
    }
    const int64_t first = messages.front().events(0).client_sequence();
    const absl::StatusOr<v1::ReportEventsResponse> response =
        coordinator_->ReportEvents(messages, {kTimeout, &stop_sending_});
    if (response.ok() && response->acknowledged_client_sequence() >= first) {
      absl::MutexLock lock(&mutex_);
      Acknowledge(response->acknowledged_client_sequence());
      backoff.Reset();
      continue;
    }
    // An answer that acknowledges nothing is tried again like a broken stream.
    if (response.ok() || IsTransient(response.status())) {
      if (stop_sending_.AwaitUntil(clock_, clock_->Now() + backoff.Next())) return;
      continue;
    }
    if (!IsLeaseLost(response.status())) {
      Log(LogLevel::kError, "events refused",
          {{"task", task_->name()}, {"error", response.status().ToString()}});
    }
    // First, so that whoever sees the failure sees why.
    if (IsLeaseLost(response.status())) task_->Stop(StopReason::kLeaseLost);
    absl::MutexLock lock(&mutex_);
    failure_ = response.status();
    return;
  }
}

}  // namespace plumbline::worker
