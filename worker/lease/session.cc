#include "worker/lease/session.h"

#include <algorithm>
#include <utility>

#include "common/logging.h"
#include "common/status.h"
#include "worker/lease/backoff.h"
#include "worker/proto_time.h"

namespace plumbline::worker {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);
constexpr absl::Duration kRegisterTimeout = absl::Seconds(10);
// The coordinator may use all of the wait before it answers.
constexpr absl::Duration kAcquireWait = absl::Seconds(30);
constexpr absl::Duration kAcquireTimeout = absl::Seconds(45);
constexpr absl::Duration kSignOffTimeout = absl::Seconds(2);
// Until the coordinator says what it wants.
constexpr absl::Duration kDefaultHeartbeatInterval = absl::Seconds(3);
constexpr absl::Duration kLongestHeartbeatTimeout = absl::Seconds(5);

absl::Duration HeartbeatInterval(const v1::RegisterWorkerResponse& registration) {
  const absl::Duration interval = FromDuration(registration.heartbeat_interval());
  return interval > absl::ZeroDuration() ? interval : kDefaultHeartbeatInterval;
}

}  // namespace

Session::Session(Coordinator* coordinator, Clock* clock, SessionOptions options)
    : coordinator_(coordinator),
      clock_(clock),
      options_(std::move(options)),
      thread_([this] { Run(); }) {}

Session::~Session() {
  stop_acquiring_.Raise();
  stop_calls_.Raise();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Session::Run() {
  Backoff backoff(kFirstRetry, kLongestRetry, options_.backoff_seed);
  bool succeeded = true;
  absl::Time next_call = clock_->Now();
  while (true) {
    const absl::Time next_grace = EnforceGrace();
    bool was_registered;
    {
      absl::MutexLock lock(&mutex_);
      const auto woken = [this]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wake_ || stopping_; };
      clock_->AwaitUntil(&mutex_, absl::Condition(&woken), std::min(next_call, next_grace));
      if (stopping_) return;
      // Being woken does not shorten the wait after a failure.
      if (clock_->Now() < next_call && !(wake_ && succeeded)) {
        wake_ = false;
        continue;
      }
      wake_ = false;
      was_registered = registered_;
    }
    succeeded = was_registered ? SendHeartbeat() : Register();
    absl::MutexLock lock(&mutex_);
    if (!refusal_.ok()) return;
    absl::Duration wait = HeartbeatInterval(registration_);
    if (!succeeded) {
      wait = std::min(backoff.Next(), wait);
    } else if (was_registered) {
      backoff.Reset();
    } else {
      wait = absl::ZeroDuration();  // The first heartbeat tells of a task that is held already.
    }
    next_call = clock_->Now() + wait;
  }
}

bool Session::Register() {
  const absl::StatusOr<v1::RegisterWorkerResponse> response =
      coordinator_->RegisterWorker(options_.registration, {kRegisterTimeout, &stop_calls_});
  absl::MutexLock lock(&mutex_);
  if (response.ok()) {
    Log(LogLevel::kInfo, "registered", {{"worker", response->worker()}});
    registration_ = *response;
    SetRegistered(true);
    last_error_ = absl::OkStatus();
    return true;
  }
  if (last_error_.code() != response.status().code() ||
      GetReason(last_error_) != GetReason(response.status())) {
    Log(LogLevel::kWarning, "cannot register", {{"error", response.status().ToString()}});
  }
  last_error_ = response.status();
  // A worker that was accepted once waits for whatever stands in its way now to be put right.
  if (registration_.worker().empty() && !IsTransient(response.status())) {
    refusal_ = response.status();
  }
  return false;
}

void Session::SetRegistered(bool registered) {
  registered_ = registered;
  if (options_.on_registered) options_.on_registered(registered);
}

bool Session::SendHeartbeat() {
  v1::HeartbeatRequest request;
  absl::Duration timeout = kLongestHeartbeatTimeout;
  std::shared_ptr<HeldTask> held;
  {
    absl::MutexLock lock(&mutex_);
    request.set_worker(registration_.worker());
    request.set_incarnation(options_.registration.incarnation());
    request.set_draining(draining_);
    held = held_;
    const absl::Duration lease = FromDuration(registration_.lease_duration());
    if (lease > absl::ZeroDuration()) timeout = std::min(timeout, lease / 3);
  }
  if (held != nullptr) {
    v1::HeartbeatRequest::Held& each = *request.add_held();
    each.set_task(held->name());
    each.set_fencing_token(held->fencing_token());
    if (auto progress = held->progress()) *each.mutable_progress() = *std::move(progress);
    each.set_run(held->run());
  }
  if (options_.usage) *request.mutable_usage() = options_.usage();

  const absl::StatusOr<v1::HeartbeatResponse> response =
      coordinator_->Heartbeat(request, {timeout, &stop_calls_});
  if (response.ok()) {
    Apply(*response, held.get());
    return true;
  }
  absl::MutexLock lock(&mutex_);
  if (last_error_.code() != response.status().code()) {
    Log(LogLevel::kWarning, "heartbeat failed; trying again",
        {{"error", response.status().ToString()}});
  }
  last_error_ = response.status();
  if (MustRegister(response.status())) SetRegistered(false);
  return false;
}

void Session::Apply(const v1::HeartbeatResponse& response, HeldTask* held) {
  using Directive = v1::HeartbeatResponse::Directive;
  {
    absl::MutexLock lock(&mutex_);
    last_error_ = absl::OkStatus();
    if (response.drain() && !draining_) {
      Log(LogLevel::kInfo, "drained by the coordinator");
      StartDraining(v1::RELEASE_REASON_DRAINED, options_.grace);
    }
  }
  if (held == nullptr) return;
  for (const Directive& directive : response.directives()) {
    if (directive.task() != held->name()) continue;
    switch (directive.action()) {
      case Directive::ACTION_CANCEL:
        held->Stop(StopReason::kCancelled);
        break;
      case Directive::ACTION_LEASE_LOST:
        held->Stop(StopReason::kLeaseLost);
        break;
      case Directive::ACTION_RELEASE: {
        absl::MutexLock lock(&mutex_);
        StartDraining(v1::RELEASE_REASON_DRAINED, options_.grace);
        break;
      }
      default:
        break;
    }
  }
}

void Session::StartDraining(v1::ReleaseReason reason, absl::Duration grace) {
  if (!draining_) {
    draining_ = true;
    release_reason_ = reason;
    wake_ = true;  // Tell the coordinator.
    stop_acquiring_.Raise();
  }
  if (held_ != nullptr) held_->AskToYield();
  const absl::Time release_at = clock_->Now() + grace;
  if (release_at < release_at_) {
    release_at_ = release_at;
    wake_ = true;
  }
}

void Session::Drain(absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  StartDraining(v1::RELEASE_REASON_PREEMPTED, grace);
}

absl::Time Session::EnforceGrace() {
  std::shared_ptr<HeldTask> held;
  absl::Time release_at;
  {
    absl::MutexLock lock(&mutex_);
    if (held_ == nullptr || release_at_ == absl::InfiniteFuture()) return absl::InfiniteFuture();
    held = held_;
    release_at = release_at_;
  }
  const absl::Time now = clock_->Now();
  if (now < release_at) return release_at;
  held->Stop(StopReason::kRelease);
  if (now < release_at + options_.release_time) return release_at + options_.release_time;
  held->Stop(StopReason::kLeaseLost);
  return absl::InfiniteFuture();
}

absl::StatusOr<std::shared_ptr<HeldTask>> Session::Acquire() {
  Backoff backoff(kFirstRetry, kLongestRetry, options_.backoff_seed + 1);
  v1::AcquireTaskRequest request;
  request.set_incarnation(options_.registration.incarnation());
  *request.mutable_wait() = ToDuration(kAcquireWait);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto can_ask = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return registered_ || draining_ || stopping_ || !refusal_.ok();
      };
      mutex_.Await(absl::Condition(&can_ask));
      if (!refusal_.ok()) return refusal_;
      if (draining_ || stopping_) return nullptr;
      request.set_worker(registration_.worker());
    }
    const absl::Time asked = clock_->Now();
    absl::StatusOr<v1::AcquireTaskResponse> response =
        coordinator_->AcquireTask(request, {kAcquireTimeout, &stop_acquiring_});

    absl::MutexLock lock(&mutex_);
    if (response.ok() && response->has_assignment()) {
      held_ = std::make_shared<HeldTask>(std::move(*response->mutable_assignment()));
      if (draining_) held_->Stop(StopReason::kRelease);  // Not begun, so nothing is lost.
      return held_;
    }
    if (response.ok() && response->drain()) {
      StartDraining(v1::RELEASE_REASON_DRAINED, options_.grace);
      continue;
    }
    absl::Duration wait = backoff.Next();
    if (response.ok()) {
      backoff.Reset();
      // An answer that came early, e.g. from a coordinator that shuts down, must not be asked for
      // in a tight loop.
      if (clock_->Now() - asked >= kAcquireWait / 2) wait = absl::ZeroDuration();
    } else if (MustRegister(response.status())) {
      SetRegistered(false);
      wake_ = true;
    }
    mutex_.Unlock();
    stop_acquiring_.AwaitUntil(clock_, clock_->Now() + wait);
    mutex_.Lock();
  }
}

void Session::Finish() {
  absl::MutexLock lock(&mutex_);
  held_ = nullptr;
}

void Session::SignOff() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_calls_.Raise();
  thread_.join();

  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mutex_);
    if (!registered_) return;
    SetRegistered(false);
    request.set_worker(registration_.worker());
  }
  request.set_incarnation(options_.registration.incarnation());
  request.set_draining(true);
  request.set_signing_off(true);
  const absl::Status status = coordinator_->Heartbeat(request, {kSignOffTimeout}).status();
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "signed off",
      {{"status", status.ToString()}});
}

v1::ReleaseReason Session::release_reason() const {
  absl::MutexLock lock(&mutex_);
  return release_reason_;
}

absl::Status Session::registered() const {
  absl::MutexLock lock(&mutex_);
  if (registered_) return absl::OkStatus();
  return last_error_.ok() ? absl::UnavailableError("not registered with the coordinator yet")
                          : last_error_;
}

std::string Session::worker_name() const {
  absl::MutexLock lock(&mutex_);
  return registration_.worker();
}

absl::Status Session::AwaitRegistration() {
  absl::MutexLock lock(&mutex_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return registered_ || draining_ || stopping_ || !refusal_.ok();
  };
  mutex_.Await(absl::Condition(&decided));
  return refusal_;
}

}  // namespace plumbline::worker
