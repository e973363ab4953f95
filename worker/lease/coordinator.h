#ifndef PLUMBLINE_WORKER_LEASE_COORDINATOR_H_
#define PLUMBLINE_WORKER_LEASE_COORDINATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "proto/plumbline/v1/job_service.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "worker/lease/cancellation.h"

namespace plumbline::worker {

struct CallOptions {
  absl::Duration timeout = absl::Seconds(20);
  Cancellation* cancellation = nullptr;  // Ends the call with CANCELLED. May be null.
};

// What a worker asks of the coordinator; a call each, no retries. Statuses are the coordinator's,
// details included; DEADLINE_EXCEEDED after the timeout. Any thread may call.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  virtual absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, const CallOptions& options) = 0;
  virtual absl::StatusOr<v1::AcquireTaskResponse> AcquireTask(const v1::AcquireTaskRequest& request,
                                                              const CallOptions& options) = 0;
  virtual absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                          const CallOptions& options) = 0;
  // All `messages` as one stream.
  virtual absl::StatusOr<v1::ReportEventsResponse> ReportEvents(
      const std::vector<v1::ReportEventsRequest>& messages, const CallOptions& options) = 0;
  // `bytes` are the whole file.
  virtual absl::StatusOr<v1::Artifact> PutArtifact(const v1::PutArtifactRequest::Header& header,
                                                   absl::Span<const uint8_t> bytes,
                                                   const CallOptions& options) = 0;
  // `tensors` are the whole of record.outputs, in order.
  virtual absl::StatusOr<v1::PutStepResponse> PutStep(const v1::PutStepRequest::Header& header,
                                                      absl::Span<const absl::string_view> tensors,
                                                      const CallOptions& options) = 0;
  // Hands each step, with its bytes, to `sink` as soon as it is whole; the sink's errors end the
  // call. DATA_LOSS, reason DIGEST_MISMATCH, if bytes are not what the step's trailer says was
  // sent.
  virtual absl::Status GetSteps(
      const v1::GetStepRequest& request,
      absl::FunctionRef<absl::Status(v1::StepRecord record, absl::string_view bytes)> sink,
      const CallOptions& options) = 0;
  virtual absl::StatusOr<v1::Run> GetRun(const v1::GetRunRequest& request,
                                         const CallOptions& options) = 0;
  virtual absl::StatusOr<v1::VerifyRunResponse> VerifyRun(const v1::VerifyRunRequest& request,
                                                          const CallOptions& options) = 0;
  virtual absl::Status CompleteTask(const v1::CompleteTaskRequest& request,
                                    const CallOptions& options) = 0;
  virtual absl::Status ReleaseTask(const v1::ReleaseTaskRequest& request,
                                   const CallOptions& options) = 0;
  // Hands the bytes asked for to `sink`, piece by piece; its errors end the call. DATA_LOSS, reason
  // DIGEST_MISMATCH, if they are not what the coordinator's trailer says was sent.
  virtual absl::StatusOr<v1::Artifact> GetArtifact(
      const v1::GetArtifactRequest& request,
      absl::FunctionRef<absl::Status(absl::string_view chunk)> sink,
      const CallOptions& options) = 0;
};

// True for an error that may be gone when the call is made again: the coordinator was away,
// overloaded or restarted.
bool IsTransient(const absl::Status& status);

// True if the attempt that the call was made for is over for this worker: its lease is lost, or
// its job is deleted.
bool IsLeaseLost(const absl::Status& status);

// True if the coordinator wants the worker to register (again) first.
bool MustRegister(const absl::Status& status);

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_COORDINATOR_H_
