#include "worker/lease/fake_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/proto_time.h"

namespace plumbline::worker {
namespace {

constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr char kTask[] = "jobs/j/tasks/0";

absl::Status Away() { return absl::UnavailableError("the coordinator is away"); }

}  // namespace

void FakeCoordinator::SetAway(bool away) {
  absl::MutexLock lock(&mutex_);
  away_ = away;
}

void FakeCoordinator::RefuseRegistration(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  registration_refusal_ = std::move(status);
}

void FakeCoordinator::ForgetWorker() {
  absl::MutexLock lock(&mutex_);
  incarnation_.clear();
}

void FakeCoordinator::Assign(int64_t fencing_token, v1::JobSpec spec) {
  absl::MutexLock lock(&mutex_);
  v1::Assignment assignment;
  assignment.mutable_lease()->set_task(kTask);
  assignment.mutable_lease()->set_fencing_token(fencing_token);
  assignment.mutable_lease()->set_attempt(1);
  *assignment.mutable_spec() = std::move(spec);
  assignment.set_next_client_sequence(1);
  queue_.push_back(std::move(assignment));
}

void FakeCoordinator::Drain() {
  absl::MutexLock lock(&mutex_);
  drain_ = true;
}

void FakeCoordinator::SetDirective(Directive::Action action) {
  absl::MutexLock lock(&mutex_);
  directive_ = action;
}

void FakeCoordinator::LoseLease() {
  absl::MutexLock lock(&mutex_);
  lease_ = 0;
}

void FakeCoordinator::SetStreamFaults(std::function<StreamFault()> faults) {
  absl::MutexLock lock(&mutex_);
  stream_faults_ = std::move(faults);
}

void FakeCoordinator::FailCompletions(std::vector<absl::Status> statuses) {
  absl::MutexLock lock(&mutex_);
  completion_failures_.assign(statuses.begin(), statuses.end());
}

void FakeCoordinator::AddArtifact(const std::string& name, const std::string& bytes) {
  absl::MutexLock lock(&mutex_);
  artifacts_[name] = bytes;
}

bool FakeCoordinator::AwaitHeartbeats(int count) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&] { return static_cast<int>(heartbeats_.size()) >= count; };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), kLongestWait);
}

bool FakeCoordinator::AwaitEvents(size_t count) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&] { return events_.size() >= count; };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), kLongestWait);
}

bool FakeCoordinator::AwaitAcquiring() {
  absl::MutexLock lock(&mutex_);
  const auto done = [&] { return acquiring_ > 0; };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), kLongestWait);
}

int FakeCoordinator::registrations() const {
  absl::MutexLock lock(&mutex_);
  return registrations_;
}

std::vector<v1::HeartbeatRequest> FakeCoordinator::heartbeats() const {
  absl::MutexLock lock(&mutex_);
  return heartbeats_;
}

std::vector<v1::JobEvent> FakeCoordinator::events() const {
  absl::MutexLock lock(&mutex_);
  return events_;
}

std::vector<v1::CompleteTaskRequest> FakeCoordinator::completions() const {
  absl::MutexLock lock(&mutex_);
  return completions_;
}

std::vector<v1::ReleaseTaskRequest> FakeCoordinator::releases() const {
  absl::MutexLock lock(&mutex_);
  return releases_;
}

std::vector<FakeCoordinator::StoredFile> FakeCoordinator::stored_files() const {
  absl::MutexLock lock(&mutex_);
  return stored_files_;
}

int FakeCoordinator::get_artifact_calls() const {
  absl::MutexLock lock(&mutex_);
  return get_artifact_calls_;
}

absl::Status FakeCoordinator::CheckWorker(absl::string_view incarnation) const {
  if (away_) return Away();
  if (incarnation_.empty() || incarnation != incarnation_) {
    return WithReason(absl::FailedPreconditionError("register"), "WORKER_UNKNOWN");
  }
  return absl::OkStatus();
}

absl::Status FakeCoordinator::CheckLease(int64_t fencing_token) const {
  if (away_) return Away();
  if (fencing_token == lease_ && lease_ != 0) return absl::OkStatus();
  return WithReason(absl::AbortedError("the lease is lost"), kLeaseLostReason);
}

absl::StatusOr<v1::RegisterWorkerResponse> FakeCoordinator::RegisterWorker(
    const v1::RegisterWorkerRequest& request, const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (away_) return Away();
  if (!registration_refusal_.ok()) return registration_refusal_;
  incarnation_ = request.incarnation();
  ++registrations_;
  v1::RegisterWorkerResponse response;
  response.set_worker(absl::StrCat("workers/", request.worker_id()));
  *response.mutable_heartbeat_interval() = ToDuration(absl::Seconds(3));
  *response.mutable_lease_duration() = ToDuration(absl::Seconds(15));
  return response;
}

absl::StatusOr<v1::AcquireTaskResponse> FakeCoordinator::AcquireTask(
    const v1::AcquireTaskRequest& request, const CallOptions& options) {
  bool cancelled = false;
  const Cancellation::Callback on_cancellation(options.cancellation, [&] {
    absl::MutexLock lock(&mutex_);
    cancelled = true;
  });
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckWorker(request.incarnation()); !status.ok()) return status;
  ++acquiring_;
  const auto answerable = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || drain_ || cancelled || away_ || incarnation_.empty();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&answerable), kLongestWait);
  --acquiring_;
  if (cancelled) return absl::CancelledError("cancelled by the caller");
  if (absl::Status status = CheckWorker(request.incarnation()); !status.ok()) return status;
  v1::AcquireTaskResponse response;
  response.set_drain(drain_);
  if (!drain_ && !queue_.empty()) {
    lease_ = queue_.front().lease().fencing_token();
    *response.mutable_assignment() = std::move(queue_.front());
    queue_.pop_front();
  }
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> FakeCoordinator::Heartbeat(
    const v1::HeartbeatRequest& request, const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckWorker(request.incarnation()); !status.ok()) return status;
  heartbeats_.push_back(request);
  v1::HeartbeatResponse response;
  response.set_drain(drain_);
  for (const v1::HeartbeatRequest::Held& held : request.held()) {
    Directive& directive = *response.add_directives();
    directive.set_task(held.task());
    directive.set_action(CheckLease(held.fencing_token()).ok() ? directive_
                                                               : Directive::ACTION_LEASE_LOST);
  }
  return response;
}

absl::StatusOr<v1::ReportEventsResponse> FakeCoordinator::ReportEvents(
    const std::vector<v1::ReportEventsRequest>& messages, const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  StreamFault fault;
  if (stream_faults_) fault = stream_faults_();
  int arrived = 0;
  for (const v1::ReportEventsRequest& message : messages) {
    if (arrived++ == fault.messages_that_arrive) return Away();
    if (absl::Status status = CheckLease(message.fencing_token()); !status.ok()) return status;
    for (const auto& numbered : message.events()) {
      const int64_t expected = static_cast<int64_t>(events_.size()) + 1;
      if (numbered.client_sequence() > expected) return FieldError("client_sequence", "a gap");
      if (numbered.client_sequence() == expected) events_.push_back(numbered.event());
    }
  }
  if (!fault.answer_arrives || arrived == fault.messages_that_arrive) return Away();
  v1::ReportEventsResponse response;
  response.set_acknowledged_client_sequence(static_cast<int64_t>(events_.size()));
  return response;
}

absl::StatusOr<v1::Artifact> FakeCoordinator::PutArtifact(
    const v1::PutArtifactRequest::Header& header, absl::Span<const uint8_t> bytes,
    const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckLease(header.fencing_token()); !status.ok()) return status;
  stored_files_.push_back(
      {header, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  v1::Artifact artifact;
  artifact.set_name(absl::StrCat("artifacts/", stored_files_.size()));
  artifact.set_role(header.role());
  artifact.set_file_name(header.file_name());
  artifact.set_size_bytes(static_cast<int64_t>(bytes.size()));
  artifact.set_sha256(Sha256Hex(bytes));
  return artifact;
}

absl::Status FakeCoordinator::CompleteTask(const v1::CompleteTaskRequest& request,
                                           const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (!completion_failures_.empty()) {
    absl::Status status = std::move(completion_failures_.front());
    completion_failures_.pop_front();
    return status;
  }
  if (absl::Status status = CheckLease(request.fencing_token()); !status.ok()) return status;
  if (request.last_client_sequence() > static_cast<int64_t>(events_.size())) {
    return absl::UnavailableError("the last event is not durable yet");
  }
  completions_.push_back(request);
  lease_ = 0;
  return absl::OkStatus();
}

absl::Status FakeCoordinator::ReleaseTask(const v1::ReleaseTaskRequest& request,
                                          const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckLease(request.fencing_token()); !status.ok()) return status;
  releases_.push_back(request);
  lease_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<v1::Artifact> FakeCoordinator::GetArtifact(
    const v1::GetArtifactRequest& request,
    absl::FunctionRef<absl::Status(absl::string_view chunk)> sink, const CallOptions& options) {
  std::string bytes;
  {
    absl::MutexLock lock(&mutex_);
    ++get_artifact_calls_;
    if (away_) return Away();
    const auto found = artifacts_.find(request.name());
    if (found == artifacts_.end()) return absl::NotFoundError(request.name());
    bytes = found->second;
  }
  v1::Artifact artifact;
  artifact.set_name(request.name());
  artifact.set_size_bytes(static_cast<int64_t>(bytes.size()));
  artifact.set_sha256(Sha256Hex(bytes));
  absl::string_view wanted = absl::string_view(bytes).substr(static_cast<size_t>(request.offset()));
  if (request.length() > 0) wanted = wanted.substr(0, static_cast<size_t>(request.length()));
  while (!wanted.empty()) {
    const absl::string_view chunk = wanted.substr(0, 1 << 20);
    PLUMBLINE_RETURN_IF_ERROR(sink(chunk));
    wanted.remove_prefix(chunk.size());
  }
  return artifact;
}

}  // namespace plumbline::worker
