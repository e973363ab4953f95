#ifndef PLUMBLINE_WORKER_LEASE_FAKE_COORDINATOR_H_
#define PLUMBLINE_WORKER_LEASE_FAKE_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/lease/coordinator.h"

namespace plumbline::worker {

// A coordinator in memory that keeps the promises of worker_service.proto to one worker, and breaks
// down when a test wants it to. Any thread may call.
class FakeCoordinator final : public Coordinator {
 public:
  using Directive = v1::HeartbeatResponse::Directive;

  // --- What a test decides.
  // Every call is UNAVAILABLE until it is set back.
  void SetAway(bool away);
  // Registration is refused with this.
  void RefuseRegistration(absl::Status status);
  // As after a restart that lost the list of workers: the worker must register again.
  void ForgetWorker();
  // Hands out a task, "jobs/j/tasks/0" under this token, with `spec`.
  void Assign(int64_t fencing_token, v1::JobSpec spec = {});
  // Answers AcquireTask and Heartbeat with `drain`.
  void Drain();
  // What the next heartbeats say of every task held.
  void SetDirective(Directive::Action action);
  // The lease is somebody else's: writes under it are refused.
  void LoseLease();
  // Asked before each ReportEvents: how many of its messages arrive before the stream breaks, or -1
  // for all of them; and whether the answer arrives.
  struct StreamFault {
    int messages_that_arrive = -1;
    bool answer_arrives = true;
  };
  void SetStreamFaults(std::function<StreamFault()> faults);
  // The next calls of CompleteTask fail with these, one each.
  void FailCompletions(std::vector<absl::Status> statuses);
  void AddArtifact(const std::string& name, const std::string& bytes);
  // The next calls of PutStep fail with these, one each, after the step is stored if `stored`.
  struct PutFault {
    absl::Status status;
    bool stored = false;
  };
  void FailPuts(std::vector<PutFault> faults);
  // The next calls of GetStep break after these many steps, one each.
  void BreakStreams(std::vector<int> steps);
  // A stored step's bytes are gone, as GetStep and the records then say.
  void Quarantine(const std::string& run, int32_t step);

  // --- What a test waits for and sees. Await* are false after a minute.
  bool AwaitHeartbeats(int count);
  bool AwaitEvents(size_t count);
  bool AwaitAcquiring();  // A worker waits for a task.
  int registrations() const;
  std::vector<v1::HeartbeatRequest> heartbeats() const;
  std::vector<v1::JobEvent> events() const;
  std::vector<v1::CompleteTaskRequest> completions() const;
  std::vector<v1::ReleaseTaskRequest> releases() const;
  struct StoredFile {
    v1::PutArtifactRequest::Header header;
    std::string bytes;
  };
  std::vector<StoredFile> stored_files() const;
  int get_artifact_calls() const;
  int put_step_calls() const;
  int get_step_calls() const;
  int verify_run_calls() const;

  // --- Coordinator.
  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, const CallOptions& options) override;
  absl::StatusOr<v1::AcquireTaskResponse> AcquireTask(const v1::AcquireTaskRequest& request,
                                                      const CallOptions& options) override;
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  const CallOptions& options) override;
  absl::StatusOr<v1::ReportEventsResponse> ReportEvents(
      const std::vector<v1::ReportEventsRequest>& messages, const CallOptions& options) override;
  absl::StatusOr<v1::Artifact> PutArtifact(const v1::PutArtifactRequest::Header& header,
                                           absl::Span<const uint8_t> bytes,
                                           const CallOptions& options) override;
  absl::StatusOr<v1::PutStepResponse> PutStep(const v1::PutStepRequest::Header& header,
                                              absl::Span<const absl::string_view> tensors,
                                              const CallOptions& options) override;
  absl::Status GetSteps(
      const v1::GetStepRequest& request,
      absl::FunctionRef<absl::Status(v1::StepRecord record, absl::string_view bytes)> sink,
      const CallOptions& options) override;
  absl::StatusOr<v1::Run> GetRun(const v1::GetRunRequest& request,
                                 const CallOptions& options) override;
  absl::StatusOr<v1::VerifyRunResponse> VerifyRun(const v1::VerifyRunRequest& request,
                                                  const CallOptions& options) override;
  absl::Status CompleteTask(const v1::CompleteTaskRequest& request,
                            const CallOptions& options) override;
  absl::Status ReleaseTask(const v1::ReleaseTaskRequest& request,
                           const CallOptions& options) override;
  absl::StatusOr<v1::Artifact> GetArtifact(
      const v1::GetArtifactRequest& request,
      absl::FunctionRef<absl::Status(absl::string_view chunk)> sink,
      const CallOptions& options) override;

 private:
  absl::Status CheckWorker(absl::string_view incarnation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLease(int64_t fencing_token) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  bool away_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status registration_refusal_ ABSL_GUARDED_BY(mutex_);
  std::string incarnation_ ABSL_GUARDED_BY(mutex_);  // Empty: no worker is known.
  int registrations_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::Assignment> queue_ ABSL_GUARDED_BY(mutex_);
  int acquiring_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lease_ ABSL_GUARDED_BY(mutex_) = 0;  // The token in force; 0: none.
  bool drain_ ABSL_GUARDED_BY(mutex_) = false;
  Directive::Action directive_ ABSL_GUARDED_BY(mutex_) = Directive::ACTION_CONTINUE;
  std::function<StreamFault()> stream_faults_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> completion_failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
  struct StoredStep {
    v1::StepRecord record;
    std::string bytes;
  };
  std::map<std::string, std::map<int32_t, StoredStep>> runs_ ABSL_GUARDED_BY(mutex_);
  std::deque<PutFault> put_faults_ ABSL_GUARDED_BY(mutex_);
  std::deque<int> broken_streams_ ABSL_GUARDED_BY(mutex_);

  std::vector<v1::HeartbeatRequest> heartbeats_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CompleteTaskRequest> completions_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReleaseTaskRequest> releases_ ABSL_GUARDED_BY(mutex_);
  std::vector<StoredFile> stored_files_ ABSL_GUARDED_BY(mutex_);
  int get_artifact_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int put_step_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int get_step_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int verify_run_calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_FAKE_COORDINATOR_H_
