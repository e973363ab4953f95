#ifndef PLUMBLINE_CLIENT_FAKE_COORDINATOR_H_
#define PLUMBLINE_CLIENT_FAKE_COORDINATOR_H_

#include <grpcpp/server.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/connector.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"

namespace plumbline::client {

// A coordinator in this process whose one job goes as a test scripts it. It keeps what it was asked
// for. Any thread may call.
class FakeCoordinator final : public v1::JobService::Service, public v1::ArtifactService::Service {
 public:
  FakeCoordinator();
  ~FakeCoordinator() override;

  // Connects to this coordinator, which must outlive it.
  std::unique_ptr<Connector> NewConnector(bool is_embedded);

  // --- The script. Set before the client begins.
  absl::Status create_error;         // CreateJob returns it.
  v1::Job job;                       // What GetJob returns once events were all sent.
  std::vector<v1::JobEvent> events;  // Sequence numbers are filled in.
  std::vector<v1::Report> report_pages;
  std::map<std::string, std::string> artifacts;  // Contents by name.
  // The stream breaks after each of these many events.
  std::vector<int> break_after;
  // Called once a stream has sent its events, if set; the stream then stays open.
  std::function<void()> on_watched;
  bool corrupt_artifacts = false;  // Their bytes arrive changed, the trailer agreeing with them.

  // --- What happened.
  std::vector<v1::CreateJobRequest> created() const;
  std::vector<std::string> deleted() const;
  std::vector<int64_t> watched_after() const;  // WatchJobRequest.after_sequence of each stream.

 private:
  grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                         v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* response) override;
  grpc::Status DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request,
                         google::protobuf::Empty* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override;
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetReportRequest* request,
                         v1::GetReportResponse* response) override;
  grpc::Status CreateUpload(grpc::ServerContext*, const v1::CreateUploadRequest* request,
                            v1::Upload* response) override;
  grpc::Status WriteUpload(grpc::ServerContext*, const v1::WriteUploadRequest* request,
                           v1::Upload* response) override;
  grpc::Status FinishUpload(grpc::ServerContext*, const v1::FinishUploadRequest* request,
                            v1::Artifact* response) override;
  grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::GetArtifactResponse>* writer) override;

  mutable absl::Mutex mutex_;
  std::vector<v1::CreateJobRequest> created_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> deleted_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> watched_after_ ABSL_GUARDED_BY(mutex_);
  std::string upload_name_ ABSL_GUARDED_BY(mutex_);
  std::string upload_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
  std::string address_;  // HOST:PORT
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_FAKE_COORDINATOR_H_
