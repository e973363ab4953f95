#include "client/fake_coordinator.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/sha256.h"

namespace plumbline::client {
namespace {

constexpr char kJob[] = "jobs/fake";
constexpr size_t kChunkBytes = 1 << 20;

class FakeConnector : public Connector {
 public:
  FakeConnector(std::string address, bool is_embedded)
      : address_(std::move(address)), is_embedded_(is_embedded) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() override {
    return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }
  bool is_embedded() const override { return is_embedded_; }
  std::string Description() const override { return "the fake coordinator"; }

 private:
  const std::string address_;
  const bool is_embedded_;
};

}  // namespace

FakeCoordinator::FakeCoordinator() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::JobService::Service*>(this));
  builder.RegisterService(static_cast<v1::ArtifactService::Service*>(this));
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeCoordinator::~FakeCoordinator() { server_->Shutdown(); }

std::unique_ptr<Connector> FakeCoordinator::NewConnector(bool is_embedded) {
  return std::make_unique<FakeConnector>(address_, is_embedded);
}

std::vector<v1::CreateJobRequest> FakeCoordinator::created() const {
  absl::MutexLock lock(&mutex_);
  return created_;
}

std::vector<std::string> FakeCoordinator::deleted() const {
  absl::MutexLock lock(&mutex_);
  return deleted_;
}

std::vector<int64_t> FakeCoordinator::watched_after() const {
  absl::MutexLock lock(&mutex_);
  return watched_after_;
}

grpc::Status FakeCoordinator::CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                                        v1::Job* response) {
  absl::MutexLock lock(&mutex_);
  created_.push_back(*request);
  *response->mutable_spec() = request->spec();
  if (!request->validate_only()) response->set_name(kJob);
  return ToGrpcStatus(create_error);
}

grpc::Status FakeCoordinator::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                     v1::Job* response) {
  if (request->name() != kJob) return ToGrpcStatus(absl::NotFoundError(request->name()));
  *response = job;
  response->set_name(kJob);
  response->set_last_sequence(static_cast<int64_t>(events.size()));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest*,
                                        v1::Job*) {
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request,
                                        google::protobuf::Empty*) {
  absl::MutexLock lock(&mutex_);
  deleted_.push_back(request->name());
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WatchJob(grpc::ServerContext* context,
                                       const v1::WatchJobRequest* request,
                                       grpc::ServerWriter<v1::JobEvent>* writer) {
  size_t stream = 0;
  {
    absl::MutexLock lock(&mutex_);
    stream = watched_after_.size();
    watched_after_.push_back(request->after_sequence());
  }
  const bool breaks = stream < break_after.size();
  auto next = static_cast<size_t>(request->after_sequence());
  const size_t end = breaks
                         ? std::min(events.size(), next + static_cast<size_t>(break_after[stream]))
                         : events.size();
  for (; next < end; ++next) {
    v1::JobEvent event = events[next];
    if (event.sequence() == 0) event.set_sequence(static_cast<int64_t>(next + 1));
    writer->Write(event);
  }
  if (on_watched) {
    on_watched();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  }
  return breaks ? ToGrpcStatus(absl::UnavailableError("scripted break")) : grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetReport(grpc::ServerContext*, const v1::GetReportRequest* request,
                                        v1::GetReportResponse* response) {
  const size_t page = request->page_token().empty() ? 0 : std::stoul(request->page_token());
  *response->mutable_report() = report_pages.at(page);
  if (page + 1 < report_pages.size()) response->set_next_page_token(absl::StrCat(page + 1));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CreateUpload(grpc::ServerContext*,
                                           const v1::CreateUploadRequest* request,
                                           v1::Upload* response) {
  absl::MutexLock lock(&mutex_);
  upload_name_ = request->file_name();
  upload_.clear();
  response->set_name("uploads/1");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WriteUpload(grpc::ServerContext*,
                                          const v1::WriteUploadRequest* request,
                                          v1::Upload* response) {
  absl::MutexLock lock(&mutex_);
  if (request->offset() != static_cast<int64_t>(upload_.size()) ||
      request->data().size() > kChunkBytes) {
    return ToGrpcStatus(absl::OutOfRangeError("wrong offset or size"));
  }
  absl::StrAppend(&upload_, request->data());
  response->set_size_bytes(static_cast<int64_t>(upload_.size()));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::FinishUpload(grpc::ServerContext*,
                                           const v1::FinishUploadRequest* request,
                                           v1::Artifact* response) {
  absl::MutexLock lock(&mutex_);
  if (request->sha256() != Sha256Hex(upload_)) return ToGrpcStatus(absl::DataLossError("digest"));
  response->set_name(absl::StrCat("artifacts/", upload_name_));
  artifacts[response->name()] = upload_;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetArtifact(grpc::ServerContext*,
                                          const v1::GetArtifactRequest* request,
                                          grpc::ServerWriter<v1::GetArtifactResponse>* writer) {
  std::string bytes;
  {
    absl::MutexLock lock(&mutex_);
    bytes = artifacts.at(request->name());
  }
  if (corrupt_artifacts) bytes[bytes.size() / 2] ^= 1;
  v1::GetArtifactResponse part;
  part.mutable_header()->set_name(request->name());
  writer->Write(part);
  for (size_t offset = 0; offset < bytes.size(); offset += kChunkBytes) {
    part.set_chunk(bytes.substr(offset, kChunkBytes));
    writer->Write(part);
  }
  part.mutable_trailer()->set_size_bytes(static_cast<int64_t>(bytes.size()));
  part.mutable_trailer()->set_sha256(Sha256Hex(bytes));
  writer->Write(part);
  return grpc::Status::OK;
}

}  // namespace plumbline::client
