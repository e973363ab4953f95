#include "server/api/artifact_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/access/gates.h"
#include "server/api/call.h"
#include "server/api/paged_stream.h"
#include "server/api/tickets.h"
#include "server/api/uploads.h"
#include "server/proto_util.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kTicketLifetime = absl::Minutes(10);

absl::StatusOr<v1::Artifact> FindArtifact(const Api& api, const std::string& name) {
  PLUMBLINE_RETURN_IF_ERROR(ParseName(name, "artifacts", "name").status());
  return api.store->ReadArtifact(name);
}

// A page is one chunk.
class GetArtifactStream final : public PagedStream<v1::GetArtifactResponse> {
 public:
  GetArtifactStream(const Api& api, const Caller& caller, const v1::GetArtifactRequest& request)
      : PagedStream(api, caller, "ArtifactService/GetArtifact"),
        request_(request),
        offset_(request.offset()) {}

 protected:
  Page ReadPage() override {
    Page page;
    const absl::Status status = Read(&page);
    if (!status.ok()) page.end = status;
    return page;
  }

 private:
  absl::Status Read(Page* page) {
    if (artifact_.name().empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(artifact_, FindArtifact(api_, request_.name()));
      if (offset_ < 0 || offset_ > artifact_.size_bytes()) {
        return FieldError("offset", absl::StrCat(offset_, " is outside the file"),
                          absl::StrCat("0 to ", artifact_.size_bytes()));
      }
      if (request_.length() < 0) return FieldError("length", "is negative", "0 or more");
      const int64_t rest = artifact_.size_bytes() - offset_;
      end_ = offset_ + (request_.length() == 0 ? rest : std::min(rest, request_.length()));
      *page->items.emplace_back().mutable_header() = artifact_;
    }
    if (offset_ < end_) {
      const int64_t length = std::min(end_ - offset_, kMaxChunkBytes);
      PLUMBLINE_ASSIGN_OR_RETURN(std::string chunk,
                                 api_.files->Read(artifact_.name(), offset_, length));
      if (static_cast<int64_t>(chunk.size()) != length) {
        return WithReason(
            absl::DataLossError(absl::StrCat(artifact_.name(), " is shorter than recorded")),
            "DIGEST_MISMATCH");
      }
      digest_.Update(chunk);
      offset_ += length;
      page->items.emplace_back().set_chunk(std::move(chunk));
    }
    if (offset_ == end_) {
      v1::StreamTrailer& trailer = *page->items.emplace_back().mutable_trailer();
      trailer.set_size_bytes(end_ - request_.offset());
      trailer.set_sha256(digest_.FinishHex());
      page->end = absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const v1::GetArtifactRequest request_;
  v1::Artifact artifact_;
  Sha256 digest_;
  int64_t offset_;
  int64_t end_ = 0;
};

class ArtifactServiceImpl final : public ArtifactServiceGate {
 public:
  explicit ArtifactServiceImpl(const Api& api)
      : ArtifactServiceGate(api.gatekeeper), api_(api), uploads_(api) {}

  grpc::ServerUnaryReactor* CreateUpload(const Caller& caller,
                                         const v1::CreateUploadRequest* request,
                                         v1::Upload* response) override {
    constexpr absl::string_view kMethod = "ArtifactService/CreateUpload";
    return RunOnPool(api_, kMethod, [this, caller, request, response] {
      return Fill(uploads_.Create(caller, *request), response);
    });
  }

  grpc::ServerUnaryReactor* WriteUpload(const Caller& caller, const v1::WriteUploadRequest* request,
                                        v1::Upload* response) override {
    return RunOnPool(api_, "ArtifactService/WriteUpload", [this, caller, request, response] {
      return Fill(uploads_.Write(caller, *request), response);
    });
  }

  grpc::ServerUnaryReactor* FinishUpload(const Caller& caller,
                                         const v1::FinishUploadRequest* request,
                                         v1::Artifact* response) override {
    constexpr absl::string_view kMethod = "ArtifactService/FinishUpload";
    return RunOnPool(api_, kMethod, [this, caller, request, response] {
      return Fill(uploads_.Finish(caller, *request), response);
    });
  }

  grpc::ServerWriteReactor<v1::GetArtifactResponse>* GetArtifact(
      const Caller& caller, const v1::GetArtifactRequest* request) override {
    auto* const stream = new GetArtifactStream(api_, caller, *request);
    stream->Start();
    return stream;
  }

  grpc::ServerUnaryReactor* CreateTicket(const Caller& caller,
                                         const v1::CreateTicketRequest* request,
                                         v1::Ticket* response) override {
    return RunOnPool(api_, "ArtifactService/CreateTicket",
                     [this, request, response]() -> absl::Status {
                       PLUMBLINE_ASSIGN_OR_RETURN(const v1::Artifact artifact,
                                                  FindArtifact(api_, request->name()));
                       const absl::Time expires = api_.clock->Now() + kTicketLifetime;
                       response->set_ticket(
                           MakeTicket(api_.store->format().ticket_key(), artifact.name(), expires));
                       *response->mutable_expire_time() = ToTimestamp(expires);
                       response->set_url_path(
                           absl::StrCat("/", artifact.name(), "?ticket=", response->ticket()));
                       return absl::OkStatus();
                     });
  }

 private:
  template <typename T>
  static absl::Status Fill(absl::StatusOr<T> value, T* response) {
    if (value.ok()) *response = *std::move(value);
    return value.status();
  }

  const Api& api_;
  Uploads uploads_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewArtifactService(const Api& api) {
  return std::make_unique<ArtifactServiceImpl>(api);
}

}  // namespace plumbline::server
