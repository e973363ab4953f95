#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/call.h"
#include "server/api/file_name.h"
#include "server/api/worker_streams.h"
#include "server/error_details.h"
#include "server/proto_util.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

// A file that a task made. Every message is handled on the pool before the next is read.
class PutArtifactStream final : public grpc::ServerReadReactor<v1::PutArtifactRequest> {
 public:
  PutArtifactStream(const Api& api, const Caller& caller, v1::Artifact* response)
      : api_(api), caller_(caller), timer_(api, kMethod), response_(response) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(FieldError("part", "the stream ended without a trailer", "header, chunks, trailer"));
      return;
    }
    api_.pool->Post([this] {
      // After the trailer the stream may be gone as soon as it is handled.
      const bool is_last = message_.has_trailer();
      const absl::Status status = Handle();
      if (!status.ok()) {
        End(status);
      } else if (!is_last) {
        StartRead(&message_);
      }
    });
  }

  void OnDone() override { delete this; }

 private:
  static constexpr absl::string_view kMethod = "WorkerService/PutArtifact";

  absl::Status Handle() {
    switch (message_.part_case()) {
      case v1::PutArtifactRequest::kHeader:
        return Begin(message_.header());
      case v1::PutArtifactRequest::kChunk:
        if (writer_ == nullptr) return FieldError("part", "begins with a chunk", "a header");
        if (static_cast<int64_t>(message_.chunk().size()) > kMaxChunkBytes) {
          return FieldError("chunk", "is too large", "at most 1 MiB");
        }
        return writer_->Append(message_.chunk());
      case v1::PutArtifactRequest::kTrailer:
        if (writer_ == nullptr) return FieldError("part", "begins with a trailer", "a header");
        return Store(message_.trailer());
      case v1::PutArtifactRequest::PART_NOT_SET:
        break;
    }
    return FieldError("part", "is not set", "header, chunk or trailer");
  }

  absl::Status Begin(const v1::PutArtifactRequest::Header& header) {
    if (writer_ != nullptr) return FieldError("header", "comes twice", "one header, first");
    if (header.role() == v1::ARTIFACT_ROLE_UNSPECIFIED ||
        header.role() == v1::ARTIFACT_ROLE_INPUT) {
      return FieldError("header.role", "is no role of what a task makes", "any but INPUT");
    }
    PLUMBLINE_RETURN_IF_ERROR(CheckFileName(header.file_name(), "header.file_name"));
    if (!header.media_type().empty()) {
      PLUMBLINE_RETURN_IF_ERROR(CheckMediaType(header.media_type(), "header.media_type"));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(task_,
                               api_.dispatcher->CheckLease(header.task(), header.fencing_token()));
    token_ = header.fencing_token();
    artifact_.set_name(absl::StrCat("artifacts/", api_.ids->NewId()));
    artifact_.set_role(header.role());
    artifact_.set_file_name(header.file_name());
    artifact_.set_media_type(header.media_type().empty() ? "application/octet-stream"
                                                         : header.media_type());
    artifact_.set_task(header.task());
    PLUMBLINE_ASSIGN_OR_RETURN(writer_, api_.files->NewArtifact(artifact_.name()));
    return absl::OkStatus();
  }

  absl::Status Store(const v1::StreamTrailer& trailer) {
    PLUMBLINE_RETURN_IF_ERROR(writer_->Finish(trailer.size_bytes(), trailer.sha256()));
    artifact_.set_size_bytes(trailer.size_bytes());
    artifact_.set_sha256(trailer.sha256());
    *artifact_.mutable_create_time() = ToTimestamp(api_.clock->Now());
    api_.dispatcher->AddArtifact(
        caller_, task_, token_, artifact_, [this](absl::StatusOr<std::string> replaced) {
          if (replaced.ok()) *response_ = artifact_;
          // What is not recorded, or is no longer, has no use for its bytes.
          const std::string useless = replaced.ok() ? *replaced : artifact_.name();
          api_.pool->Post([this, useless, status = replaced.status()] {
            if (!useless.empty()) api_.files->Delete(useless);
            End(status);
          });
        });
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    timer_.End(status);
    Finish(ToClientStatus(status));
  }

  const Api& api_;
  const Caller caller_;
  const CallTimer timer_;
  v1::Artifact* const response_;
  v1::PutArtifactRequest message_;
  TaskKey task_;
  int64_t token_ = 0;
  v1::Artifact artifact_;
  std::unique_ptr<ArtifactFiles::Writer> writer_;
};

}  // namespace

grpc::ServerReadReactor<v1::PutArtifactRequest>* NewPutArtifactStream(const Api& api,
                                                                      const Caller& caller,
                                                                      v1::Artifact* response) {
  return new PutArtifactStream(api, caller, response);
}

}  // namespace plumbline::server
