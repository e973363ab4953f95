#include "worker/lease/grpc_coordinator.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/grpc_status.h"
#include "common/sha256.h"
#include "common/status.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"

namespace plumbline::worker {
namespace {

// Answers what the tests ask for over a real connection.
class Services final : public v1::WorkerService::Service, public v1::ArtifactService::Service {
 public:
  grpc::Status AcquireTask(grpc::ServerContext* context, const v1::AcquireTaskRequest* request,
                           v1::AcquireTaskResponse* response) override {
    acquiring.Notify();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  }

  grpc::Status ReportEvents(grpc::ServerContext* context,
                            grpc::ServerReader<v1::ReportEventsRequest>* reader,
                            v1::ReportEventsResponse* response) override {
    v1::ReportEventsRequest request;
    while (reader->Read(&request)) {
      if (request.fencing_token() != 7) {
        return ToGrpcStatus(WithReason(absl::AbortedError("lost"), kLeaseLostReason));
      }
      for (const auto& event : request.events()) {
        response->set_acknowledged_client_sequence(event.client_sequence());
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status PutArtifact(grpc::ServerContext* context,
                           grpc::ServerReader<v1::PutArtifactRequest>* reader,
                           v1::Artifact* artifact) override {
    v1::PutArtifactRequest request;
    EXPECT_TRUE(reader->Read(&request) && request.has_header());
    artifact->set_file_name(request.header().file_name());
    std::string bytes;
    while (reader->Read(&request) && request.has_chunk()) {
      EXPECT_LE(request.chunk().size(), size_t{1} << 20);
      bytes += request.chunk();
    }
    EXPECT_TRUE(request.has_trailer());
    EXPECT_EQ(request.trailer().size_bytes(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(request.trailer().sha256(), Sha256Hex(bytes));
    artifact->set_sha256(Sha256Hex(bytes));
    return grpc::Status::OK;
  }

  grpc::Status GetArtifact(grpc::ServerContext* context, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::GetArtifactResponse>* writer) override {
    v1::GetArtifactResponse part;
    part.mutable_header()->set_name(request->name());
    writer->Write(part);
    const std::string bytes =
        file.substr(static_cast<size_t>(request->offset()), static_cast<size_t>(request->length()));
    for (size_t at = 0; at < bytes.size(); at += 3) {
      part.set_chunk(bytes.substr(at, 3));
      writer->Write(part);
    }
    part.mutable_trailer()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    part.mutable_trailer()->set_sha256(Sha256Hex(corrupt ? "other" : bytes));
    if (!truncate) writer->Write(part);
    return grpc::Status::OK;
  }

  absl::Notification acquiring;
  std::string file = "0123456789";
  bool corrupt = false;
  bool truncate = false;
};

class GrpcCoordinatorTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<v1::WorkerService::Service*>(&services_));
    builder.RegisterService(static_cast<v1::ArtifactService::Service*>(&services_));
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    coordinator_ = MakeGrpcCoordinator(
        ClientChannels::Load(absl::StrCat("127.0.0.1:", port), ClientFiles()).value());
  }

  absl::StatusOr<std::string> Get(int64_t offset, int64_t length) {
    v1::GetArtifactRequest request;
    request.set_name("artifacts/a");
    request.set_offset(offset);
    request.set_length(length);
    std::string bytes;
    const auto artifact = coordinator_->GetArtifact(request,
                                                    [&bytes](absl::string_view chunk) {
                                                      absl::StrAppend(&bytes, chunk);
                                                      return absl::OkStatus();
                                                    },
                                                    {});
    if (!artifact.ok()) return artifact.status();
    EXPECT_EQ(artifact->name(), "artifacts/a");
    return bytes;
  }

  Services services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(GrpcCoordinatorTest, StatusesKeepTheirReason) {
  v1::ReportEventsRequest message;
  message.set_fencing_token(6);
  const absl::Status status = coordinator_->ReportEvents({message}, {}).status();
  EXPECT_EQ(status.message(), "lost");
  EXPECT_TRUE(IsLeaseLost(status));
  EXPECT_FALSE(IsTransient(status));
}

TEST_F(GrpcCoordinatorTest, EventsGoInOneStreamWithOneAnswer) {
  std::vector<v1::ReportEventsRequest> messages(3);
  for (int i = 0; i < 3; ++i) {
    messages[static_cast<size_t>(i)].set_fencing_token(7);
    messages[static_cast<size_t>(i)].add_events()->set_client_sequence(i + 1);
  }
  EXPECT_EQ(coordinator_->ReportEvents(messages, {})->acknowledged_client_sequence(), 3);
}

TEST_F(GrpcCoordinatorTest, FilesGoInChunksWithTheirDigest) {
  v1::PutArtifactRequest::Header header;
  header.set_file_name("f");
  for (const size_t size : {size_t{0}, size_t{5}, (size_t{1} << 20), (size_t{3} << 20) + 1}) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
    const auto artifact = coordinator_->PutArtifact(header, bytes, {});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(artifact->sha256(), Sha256Hex(bytes));
  }
}

TEST_F(GrpcCoordinatorTest, DownloadsAreCheckedAgainstTheirTrailer) {
  EXPECT_EQ(*Get(2, 7), "2345678");
  services_.corrupt = true;
  EXPECT_EQ(Get(2, 7).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(GetReason(Get(2, 7).status()), "DIGEST_MISMATCH");
  services_.corrupt = false;
  services_.truncate = true;
  EXPECT_EQ(Get(2, 7).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(GrpcCoordinatorTest, SinksErrorEndsTheDownload) {
  v1::GetArtifactRequest request;
  request.set_length(7);
  const auto artifact = coordinator_->GetArtifact(
      request, [](absl::string_view) { return absl::ResourceExhaustedError("disk full"); }, {});
  EXPECT_EQ(artifact.status().message(), "disk full");
}

TEST_F(GrpcCoordinatorTest, CancellationEndsALongPoll) {
  Cancellation cancellation;
  std::thread canceller([&] {
    services_.acquiring.WaitForNotification();
    cancellation.Raise();
  });
  const absl::Status status =
      coordinator_->AcquireTask({}, {absl::Minutes(1), &cancellation}).status();
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcCoordinatorTest, CallEndsAtItsDeadline) {
  EXPECT_EQ(coordinator_->AcquireTask({}, {absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(GrpcCoordinatorTest, NobodyThereIsTransient) {
  server_->Shutdown();
  EXPECT_TRUE(IsTransient(coordinator_->Heartbeat({}, {absl::Seconds(10)}).status()));
}

}  // namespace
}  // namespace plumbline::worker
