#include "server/api/worker_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "common/status.h"
#include "server/access/gates.h"
#include "server/api/call.h"
#include "server/api/comparison_sides.h"
#include "server/api/worker_streams.h"
#include "server/proto_util.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

constexpr size_t kMaxIncarnationBytes = 128;
constexpr int kMaxLabels = 32;
constexpr size_t kMaxLabelBytes = 255;
constexpr absl::Duration kLongestWait = absl::Minutes(1);

absl::Status CheckLabels(const std::string& field,
                         const google::protobuf::Map<std::string, std::string>& labels) {
  for (const auto& [key, value] : labels) {
    PLUMBLINE_RETURN_IF_ERROR(CheckChosenName(key, field, kMaxLabelBytes));
    PLUMBLINE_RETURN_IF_ERROR(
        CheckRemark(value, absl::StrCat(field, "[", key, "]"), kMaxLabelBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckRegistration(const v1::RegisterWorkerRequest& request) {
  PLUMBLINE_RETURN_IF_ERROR(
      ParseName(absl::StrCat("workers/", request.worker_id()), "workers", "worker_id").status());
  if (request.incarnation().empty() || request.incarnation().size() > kMaxIncarnationBytes) {
    return FieldError("incarnation", "is not set, or too long", "1 to 128 bytes");
  }
  if (request.capabilities().device().kind() == v1::DEVICE_KIND_UNSPECIFIED) {
    return FieldError("capabilities.device.kind", "is not set",
                      "DEVICE_KIND_CPU or DEVICE_KIND_CUDA");
  }
  if (request.capabilities().device().memory_bytes() <= 0) {
    return FieldError("capabilities.device.memory_bytes", "is not positive", "1 or more");
  }
  if (request.labels_size() > kMaxLabels || request.attempt_labels_size() > kMaxLabels) {
    return FieldError("labels", "there are too many", "at most 32");
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckLabels("labels", request.labels()));
  return CheckLabels("attempt_labels", request.attempt_labels());
}

absl::Status CheckCompletion(const v1::CompleteTaskRequest& request) {
  switch (request.result_case()) {
    case v1::CompleteTaskRequest::kReport:
      if (static_cast<int64_t>(request.report().ByteSizeLong()) > kMaxReportBytes) {
        return WithReason(absl::ResourceExhaustedError(
                              absl::StrCat("a report has at most ", kMaxReportBytes, " bytes")),
                          "TOO_LARGE");
      }
      return absl::OkStatus();
    case v1::CompleteTaskRequest::kFailure:
      if (request.failure().failure_class() == v1::FAILURE_CLASS_UNSPECIFIED) {
        return FieldError("failure.failure_class", "is not set", "any but UNSPECIFIED");
      }
      if (request.failure().status().code() == 0) {
        return FieldError("failure.status.code", "is OK", "the code of an error");
      }
      return absl::OkStatus();
    case v1::CompleteTaskRequest::RESULT_NOT_SET:
      break;
  }
  return FieldError("result", "is not set", "report or failure");
}

class WorkerServiceImpl final : public WorkerServiceGate {
 public:
  explicit WorkerServiceImpl(const Api& api) : WorkerServiceGate(api.gatekeeper), api_(api) {}

  grpc::ServerUnaryReactor* RegisterWorker(const Caller& caller,
                                           const v1::RegisterWorkerRequest* request,
                                           v1::RegisterWorkerResponse* response) override {
    constexpr absl::string_view kMethod = "WorkerService/RegisterWorker";
    if (absl::Status bad = CheckRegistration(*request); !bad.ok()) {
      return Refuse(api_, kMethod, std::move(bad));
    }
    auto* const call = new UnaryCall(api_, kMethod);
    api_.dispatcher->RegisterWorker(caller, *request, Into(call, response));
    return call;
  }

  grpc::ServerUnaryReactor* AcquireTask(const Caller& caller, const v1::AcquireTaskRequest* request,
                                        v1::AcquireTaskResponse* response) override {
    constexpr absl::string_view kMethod = "WorkerService/AcquireTask";
    const absl::Duration wait = FromDuration(request->wait());
    if (wait < absl::ZeroDuration() || wait > kLongestWait) {
      return Refuse(api_, kMethod,
                    FieldError("wait", absl::StrCat(absl::FormatDuration(wait), " is out of range"),
                               "0 to 60 s"));
    }
    auto* const call = new UnaryCall(api_, kMethod);
    // The call may end, and be gone, before AcquireTask returns: only what is set before it runs
    // may touch it, and the poll's handle is known only after.
    auto handle = std::make_shared<PollHandle>();
    call->OnceCancelled([this, handle] {
      if (const int64_t known = handle->Cancel(); known != 0) {
        api_.dispatcher->CancelAcquire(known);
      }
    });
    const int64_t known = api_.dispatcher->AcquireTask(
        *request, wait,
        [this, call, caller, response](absl::StatusOr<v1::AcquireTaskResponse> answer) {
          // It may have waited for longer than the token was good.
          const absl::Status good = api_.gatekeeper->Recheck(caller);
          // Nobody is there to do it; this saves waiting for the lease to expire.
          if (answer.ok() && answer->has_assignment() && (call->IsCancelled() || !good.ok())) {
            api_.dispatcher->TakeBack(answer->assignment().lease());
          }
          if (!good.ok()) {
            call->End(good);
            return;
          }
          if (answer.ok()) *response = *std::move(answer);
          if (!response->assignment().spec().comparison().has_generations()) {
            call->End(answer.status());
            return;
          }
          // What is to be compared exists by now; it is on the disk.
          api_.pool->Post([this, call, response] {
            FillSides(api_, response->mutable_assignment()
                                ->mutable_spec()
                                ->mutable_comparison()
                                ->mutable_generations());
            call->End(absl::OkStatus());
          });
        });
    if (handle->Set(known)) api_.dispatcher->CancelAcquire(known);
    return call;
  }

  grpc::ServerUnaryReactor* Heartbeat(const Caller& caller, const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override {
    auto* const call = new UnaryCall(api_, "WorkerService/Heartbeat");
    api_.dispatcher->Heartbeat(*request, Into(call, response));
    return call;
  }

  grpc::ServerReadReactor<v1::ReportEventsRequest>* ReportEvents(
      const Caller& caller, v1::ReportEventsResponse* response) override {
    return NewReportEventsStream(api_, caller, response);
  }

  grpc::ServerReadReactor<v1::PutStepRequest>* PutStep(const Caller& caller,
                                                       v1::PutStepResponse* response) override {
    return NewPutStepStream(api_, caller, response);
  }

  grpc::ServerWriteReactor<v1::GetStepResponse>* GetStep(
      const Caller& caller, const v1::GetStepRequest* request) override {
    return NewGetStepStream(api_, caller, *request);
  }

  grpc::ServerReadReactor<v1::PutArtifactRequest>* PutArtifact(const Caller& caller,
                                                               v1::Artifact* response) override {
    return NewPutArtifactStream(api_, caller, response);
  }

  grpc::ServerUnaryReactor* CompleteTask(const Caller& caller,
                                         const v1::CompleteTaskRequest* request,
                                         v1::CompleteTaskResponse*) override {
    constexpr absl::string_view kMethod = "WorkerService/CompleteTask";
    if (absl::Status bad = CheckCompletion(*request); !bad.ok()) {
      return Refuse(api_, kMethod, std::move(bad));
    }
    auto* const call = new UnaryCall(api_, kMethod);
    api_.dispatcher->CompleteTask(caller, *request,
                                  [call](absl::Status status) { call->End(status); });
    return call;
  }

  grpc::ServerUnaryReactor* ReleaseTask(const Caller& caller, const v1::ReleaseTaskRequest* request,
                                        google::protobuf::Empty*) override {
    constexpr absl::string_view kMethod = "WorkerService/ReleaseTask";
    if (request->reason() == v1::RELEASE_REASON_UNSPECIFIED) {
      return Refuse(api_, kMethod, FieldError("reason", "is not set", "any but UNSPECIFIED"));
    }
    auto* const call = new UnaryCall(api_, kMethod);
    api_.dispatcher->ReleaseTask(caller, *request,
                                 [call](absl::Status status) { call->End(status); });
    return call;
  }

 private:
  // A long poll's handle, which is known only after the poll began, and whether its caller left
  // before that.
  class PollHandle {
   public:
    // The handle if it is known; else it is cancelled as soon as it is.
    int64_t Cancel() {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      return handle_;
    }
    // Whether the caller had left.
    bool Set(int64_t handle) {
      absl::MutexLock lock(&mutex_);
      handle_ = handle;
      return cancelled_;
    }

   private:
    absl::Mutex mutex_;
    int64_t handle_ ABSL_GUARDED_BY(mutex_) = 0;
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  };

  template <typename Response>
  static Dispatcher::Done<Response> Into(UnaryCall* call, Response* response) {
    return [call, response](absl::StatusOr<Response> answer) {
      if (answer.ok()) *response = *std::move(answer);
      call->End(answer.status());
    };
  }

  const Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewWorkerService(const Api& api) {
  return std::make_unique<WorkerServiceImpl>(api);
}

}  // namespace plumbline::server
