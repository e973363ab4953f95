#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/sha256.h"
#include "common/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/call.h"
#include "server/api/paged_stream.h"
#include "server/api/worker_streams.h"
#include "server/error_details.h"
#include "server/store/run_name.h"

namespace plumbline::server {
namespace {

// A step that a worker saves. Every message is handled on the pool before the next is read.
class PutStepStream final : public grpc::ServerReadReactor<v1::PutStepRequest> {
 public:
  PutStepStream(const Api& api, const Caller& caller, v1::PutStepResponse* response)
      : api_(api), caller_(caller), timer_(api, kMethod), response_(response) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(FieldError("part", "the stream ended without a trailer", "header, chunks, trailer"));
      return;
    }
    api_.pool->Post([this] {
      const absl::Status status = Handle();
      if (!status.ok() || message_.has_trailer()) {
        End(status);
      } else {
        StartRead(&message_);
      }
    });
  }

  void OnDone() override { delete this; }

 private:
  static constexpr absl::string_view kMethod = "WorkerService/PutStep";

  absl::Status Handle() {
    switch (message_.part_case()) {
      case v1::PutStepRequest::kHeader:
        return Begin();
      case v1::PutStepRequest::kChunk:
        if (upload_ == nullptr) return FieldError("part", "begins with a chunk", "a header");
        if (static_cast<int64_t>(message_.chunk().size()) > kMaxChunkBytes) {
          return FieldError("chunk", "is too large", "at most 1 MiB");
        }
        return upload_->Append(std::move(*message_.mutable_chunk()));
      case v1::PutStepRequest::kTrailer:
        if (upload_ == nullptr) return FieldError("part", "begins with a trailer", "a header");
        PLUMBLINE_RETURN_IF_ERROR(upload_->Finish(message_.trailer()));
        return Store();
      case v1::PutStepRequest::PART_NOT_SET:
        break;
    }
    return FieldError("part", "is not set", "header, chunk or trailer");
  }

  absl::Status Begin() {
    if (upload_ != nullptr) return FieldError("header", "comes twice", "one header, first");
    v1::PutStepRequest::Header& header = *message_.mutable_header();
    PLUMBLINE_RETURN_IF_ERROR(CheckStepHeader(header));
    // What a run was decoded to is not the task's run.
    const std::string run = header.decode_of().empty()
                                ? absl::StrCat("runs/", header.identity().sha256())
                                : std::string();
    PLUMBLINE_ASSIGN_OR_RETURN(
        StepOwner owner, api_.dispatcher->BeginStep(header.task(), header.fencing_token(), run));
    if (header.has_record()) {
      header.mutable_record()->set_worker(owner.worker);
      header.mutable_record()->set_attempt(owner.attempt);
    }
    step_.task = owner.task;
    step_.fencing_token = header.fencing_token();
    step_.generation = std::move(*owner.spec.mutable_generation());
    step_.checkpoint = owner.spec.checkpoint();
    step_.header = std::move(header);
    upload_ = std::make_unique<StepUpload>(step_.header);
    step_.upload = upload_.get();
    return absl::OkStatus();
  }

  absl::Status Store() {
    const std::string run = absl::StrCat("runs/", step_.header.identity().sha256());
    v1::AuditEvent audit = api_.dispatcher->Audit(caller_, run);
    if (!step_.header.has_record()) return api_.steps->PutRun(step_, std::move(audit));
    audit.set_message(absl::StrCat("step ", step_.header.record().index()));
    PLUMBLINE_ASSIGN_OR_RETURN(*response_, api_.steps->PutStep(step_, std::move(audit)));
    if (!response_->already_stored()) {
      api_.dispatcher->NoteSavedStep(
          step_.task, step_.fencing_token,
          step_.header.decodes() ? std::nullopt : std::optional(response_->record().index()));
    }
    // The step is saved, whatever becomes of others.
    if (const auto deleted = api_.steps->EnforceBudget(); !deleted.ok()) {
      Log(LogLevel::kError, "runs cannot be deleted for want of room",
          {{"error", deleted.status().ToString()}});
    }
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    timer_.End(status);
    Finish(ToClientStatus(status));
  }

  const Api& api_;
  const Caller caller_;
  const CallTimer timer_;
  v1::PutStepResponse* const response_;
  v1::PutStepRequest message_;
  NewStep step_;
  std::unique_ptr<StepUpload> upload_;
};

// Saved steps, each read whole and checked before its record is sent.
class GetStepStream final : public PagedStream<v1::GetStepResponse> {
 public:
  GetStepStream(const Api& api, const Caller& caller, const v1::GetStepRequest& request)
      : PagedStream(api, caller, "WorkerService/GetStep"),
        request_(request),
        next_(request.index()) {}

 private:
  Page ReadPage() override {
    Page page;
    const absl::StatusOr<std::string> run = ParseRunName(request_.run(), "run");
    absl::Status bad = run.status();
    if (bad.ok() && (request_.index() < 0 || request_.count() < 0)) {
      bad = FieldError(request_.index() < 0 ? "index" : "count", "is negative", "0 or more");
    }
    if (!bad.ok()) {
      page.end = bad;
      return page;
    }
    const int64_t end = int64_t{request_.index()} + std::max(request_.count(), 1);
    if (next_ >= end || next_ > std::numeric_limits<int32_t>::max()) {
      page.end = absl::OkStatus();
      return page;
    }
    absl::StatusOr<StepStore::SavedStep> step =
        api_.steps->ReadStep(*run, static_cast<int32_t>(next_++));
    if (!step.ok()) {
      // What is not saved ends the stream.
      page.end = absl::IsNotFound(step.status()) ? absl::OkStatus() : step.status();
      return page;
    }
    *page.items.emplace_back().mutable_record() = std::move(step->record);
    Sha256 digest;
    int64_t size_bytes = 0;
    for (const std::string& output : step->outputs) {
      digest.Update(output);
      size_bytes += static_cast<int64_t>(output.size());
      for (size_t offset = 0; offset < output.size(); offset += kMaxChunkBytes) {
        page.items.emplace_back().set_chunk(output.substr(offset, kMaxChunkBytes));
      }
    }
    v1::StreamTrailer& trailer = *page.items.emplace_back().mutable_trailer();
    trailer.set_size_bytes(size_bytes);
    trailer.set_sha256(digest.FinishHex());
    return page;
  }

  const v1::GetStepRequest request_;
  int64_t next_;
};

}  // namespace

grpc::ServerReadReactor<v1::PutStepRequest>* NewPutStepStream(const Api& api, const Caller& caller,
                                                              v1::PutStepResponse* response) {
  return new PutStepStream(api, caller, response);
}

grpc::ServerWriteReactor<v1::GetStepResponse>* NewGetStepStream(const Api& api,
                                                                const Caller& caller,
                                                                const v1::GetStepRequest& request) {
  auto* const stream = new GetStepStream(api, caller, request);
  stream->Start();
  return stream;
}

}  // namespace plumbline::server
