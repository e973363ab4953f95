#include "worker/lease/grpc_coordinator.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crash_point.h"
#include "common/grpc_status.h"
#include "common/sha256.h"
#include "common/status.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"

namespace plumbline::worker {
namespace {

constexpr size_t kMaxChunkBytes = 1 << 20;
// No step is as large: more would be taken for one that was never announced so.
constexpr int64_t kMaxStepBytes = int64_t{4} << 30;

// One call's context: its deadline, and its end when the caller's cancellation is raised.
class Call {
 public:
  explicit Call(const CallOptions& options)
      : on_cancellation_(options.cancellation, [this] { context_.TryCancel(); }) {
    // Relative, so that no clock is read here: how long a network may take is real time in any
    // case.
    context_.set_deadline(
        gpr_time_from_millis(absl::ToInt64Milliseconds(options.timeout), GPR_TIMESPAN));
  }

  grpc::ClientContext* context() { return &context_; }

 private:
  grpc::ClientContext context_;
  Cancellation::Callback on_cancellation_;
};

absl::Status DigestMismatch(absl::string_view name, absl::string_view what) {
  return WithReason(absl::DataLossError(absl::StrCat(name, ": the coordinator sent other ", what,
                                                     " than its trailer says")),
                    "DIGEST_MISMATCH");
}

class GrpcCoordinator final : public Coordinator {
 public:
  GrpcCoordinator(const ClientChannels& channels, const std::shared_ptr<grpc::Channel>& channel)
      : channels_(channels),
        worker_service_(v1::WorkerService::NewStub(channel)),
        artifact_service_(v1::ArtifactService::NewStub(channel)),
        store_service_(v1::StoreService::NewStub(channel)) {}

  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, const CallOptions& options) override {
    absl::StatusOr<v1::RegisterWorkerResponse> response = Unary<v1::RegisterWorkerResponse>(
        worker_service_.get(), &v1::WorkerService::Stub::RegisterWorker, request, options);
    if (!absl::IsUnavailable(response.status())) return response;
    // It may be put right while the worker waits, so that it stays UNAVAILABLE.
    const absl::Status why = channels_.WhyNotConnected();
    if (why.ok()) return response;
    return WithReason(absl::UnavailableError(why.message()), "NOT_CONNECTED");
  }

  absl::StatusOr<v1::AcquireTaskResponse> AcquireTask(const v1::AcquireTaskRequest& request,
                                                      const CallOptions& options) override {
    return Unary<v1::AcquireTaskResponse>(worker_service_.get(),
                                          &v1::WorkerService::Stub::AcquireTask, request, options);
  }

  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  const CallOptions& options) override {
    return Unary<v1::HeartbeatResponse>(worker_service_.get(), &v1::WorkerService::Stub::Heartbeat,
                                        request, options);
  }

  absl::Status CompleteTask(const v1::CompleteTaskRequest& request,
                            const CallOptions& options) override {
    return Unary<v1::CompleteTaskResponse>(worker_service_.get(),
                                           &v1::WorkerService::Stub::CompleteTask, request, options)
        .status();
  }

  absl::Status ReleaseTask(const v1::ReleaseTaskRequest& request,
                           const CallOptions& options) override {
    return Unary<google::protobuf::Empty>(worker_service_.get(),
                                          &v1::WorkerService::Stub::ReleaseTask, request, options)
        .status();
  }

  absl::StatusOr<v1::ReportEventsResponse> ReportEvents(
      const std::vector<v1::ReportEventsRequest>& messages, const CallOptions& options) override {
    Call call(options);
    v1::ReportEventsResponse response;
    const auto writer = worker_service_->ReportEvents(call.context(), &response);
    for (const v1::ReportEventsRequest& message : messages) {
      if (!writer->Write(message)) break;  // Finish() says why.
    }
    writer->WritesDone();
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(writer->Finish()));
    return response;
  }

  absl::StatusOr<v1::Artifact> PutArtifact(const v1::PutArtifactRequest::Header& header,
                                           absl::Span<const uint8_t> bytes,
                                           const CallOptions& options) override {
    Call call(options);
    v1::Artifact artifact;
    const auto writer = worker_service_->PutArtifact(call.context(), &artifact);
    v1::PutArtifactRequest request;
    *request.mutable_header() = header;
    const absl::string_view whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (writer->Write(request)) WriteChunks(writer.get(), {&whole, 1}, &request);
    writer->WritesDone();
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(writer->Finish()));
    return artifact;
  }

  absl::StatusOr<v1::PutStepResponse> PutStep(const v1::PutStepRequest::Header& header,
                                              absl::Span<const absl::string_view> tensors,
                                              const CallOptions& options) override {
    Call call(options);
    v1::PutStepResponse response;
    const auto writer = worker_service_->PutStep(call.context(), &response);
    v1::PutStepRequest request;
    *request.mutable_header() = header;
    if (writer->Write(request)) {
      CrashPoint(CrashPlace::kWorkerDuringPut);
      WriteChunks(writer.get(), tensors, &request);
    }
    writer->WritesDone();
    CrashPoint(CrashPlace::kWorkerBeforeAck);
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(writer->Finish()));
    return response;
  }

  absl::Status GetSteps(
      const v1::GetStepRequest& request,
      absl::FunctionRef<absl::Status(v1::StepRecord record, absl::string_view bytes)> sink,
      const CallOptions& options) override {
    Call call(options);
    const auto reader = worker_service_->GetStep(call.context(), request);
    v1::GetStepResponse part;
    v1::StepRecord record;
    std::string bytes;
    absl::Status status;
    while (status.ok() && reader->Read(&part)) {
      switch (part.part_case()) {
        case v1::GetStepResponse::kRecord:
          record = std::move(*part.mutable_record());
          bytes.clear();
          break;
        case v1::GetStepResponse::kChunk:
          bytes.append(part.chunk());
          if (static_cast<int64_t>(bytes.size()) > kMaxStepBytes) {
            status = DigestMismatch(request.run(), "more bytes");
          }
          break;
        case v1::GetStepResponse::kTrailer:
          if (part.trailer().size_bytes() != static_cast<int64_t>(bytes.size()) ||
              part.trailer().sha256() != Sha256Hex(bytes)) {
            status =
                DigestMismatch(absl::StrCat(request.run(), ": step ", record.index()), "bytes");
          } else {
            status = sink(std::move(record), bytes);
          }
          record.Clear();
          bytes.clear();
          break;
        case v1::GetStepResponse::PART_NOT_SET:
          break;
      }
    }
    if (!status.ok()) {
      call.context()->TryCancel();
      reader->Finish();
      return status;
    }
    return FromGrpcStatus(reader->Finish());
  }

  absl::StatusOr<v1::Run> GetRun(const v1::GetRunRequest& request,
                                 const CallOptions& options) override {
    return Unary<v1::Run>(store_service_.get(), &v1::StoreService::Stub::GetRun, request, options);
  }

  absl::StatusOr<v1::VerifyRunResponse> VerifyRun(const v1::VerifyRunRequest& request,
                                                  const CallOptions& options) override {
    return Unary<v1::VerifyRunResponse>(store_service_.get(), &v1::StoreService::Stub::VerifyRun,
                                        request, options);
  }

  absl::StatusOr<v1::Artifact> GetArtifact(
      const v1::GetArtifactRequest& request,
      absl::FunctionRef<absl::Status(absl::string_view chunk)> sink,
      const CallOptions& options) override {
    Call call(options);
    const auto reader = artifact_service_->GetArtifact(call.context(), request);
    v1::GetArtifactResponse part;
    v1::Artifact artifact;
    v1::StreamTrailer trailer;
    bool complete = false;
    Sha256 hash;
    int64_t size_bytes = 0;
    while (reader->Read(&part)) {
      switch (part.part_case()) {
        case v1::GetArtifactResponse::kHeader:
          artifact = std::move(*part.mutable_header());
          break;
        case v1::GetArtifactResponse::kChunk:
          hash.Update(part.chunk());
          size_bytes += static_cast<int64_t>(part.chunk().size());
          if (absl::Status status = sink(part.chunk()); !status.ok()) {
            call.context()->TryCancel();
            reader->Finish();
            return status;
          }
          break;
        case v1::GetArtifactResponse::kTrailer:
          trailer = std::move(*part.mutable_trailer());
          complete = true;
          break;
        case v1::GetArtifactResponse::PART_NOT_SET:
          break;
      }
    }
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(reader->Finish()));
    if (!complete || trailer.size_bytes() != size_bytes) {
      return DigestMismatch(request.name(), absl::StrCat(size_bytes, " bytes"));
    }
    if (trailer.sha256() != hash.FinishHex()) return DigestMismatch(request.name(), "bytes");
    return artifact;
  }

 private:
  // Chunks and trailer of a stream whose header is written. Finish() says what became of them.
  template <typename Writer, typename Request>
  static void WriteChunks(Writer* writer, absl::Span<const absl::string_view> pieces,
                          Request* request) {
    Sha256 hash;
    int64_t size_bytes = 0;
    for (const absl::string_view piece : pieces) {
      for (size_t offset = 0; offset < piece.size(); offset += kMaxChunkBytes) {
        const absl::string_view chunk = piece.substr(offset, kMaxChunkBytes);
        hash.Update(chunk);
        size_bytes += static_cast<int64_t>(chunk.size());
        request->set_chunk(chunk.data(), chunk.size());
        if (!writer->Write(*request)) return;
      }
    }
    request->mutable_trailer()->set_size_bytes(size_bytes);
    request->mutable_trailer()->set_sha256(hash.FinishHex());
    writer->Write(*request);
  }

  template <typename Response, typename Stub, typename Request>
  static absl::StatusOr<Response> Unary(Stub* stub,
                                        grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                                        const Request& request, const CallOptions& options) {
    Call call(options);
    Response response;
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus((stub->*method)(call.context(), request, &response)));
    return response;
  }

  const ClientChannels channels_;
  const std::unique_ptr<v1::WorkerService::Stub> worker_service_;
  const std::unique_ptr<v1::ArtifactService::Stub> artifact_service_;
  const std::unique_ptr<v1::StoreService::Stub> store_service_;
};

}  // namespace

std::unique_ptr<Coordinator> MakeGrpcCoordinator(const ClientChannels& channels) {
  grpc::ChannelArguments arguments;
  // A restarted coordinator is found within seconds; the callers' own backoff spreads the calls.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Notices a peer that is gone without a word, e.g. a node that lost its power.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  return std::make_unique<GrpcCoordinator>(channels, channels.Connect(arguments));
}

}  // namespace plumbline::worker
