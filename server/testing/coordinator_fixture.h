#ifndef PLUMBLINE_SERVER_TESTING_COORDINATOR_FIXTURE_H_
#define PLUMBLINE_SERVER_TESTING_COORDINATOR_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/clock_fake.h"
#include "common/grpc_status.h"
#include "gtest/gtest.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"
#include "server/coordinator.h"

namespace plumbline::server {

// A coordinator in this process with a client at it, and short ways to say what tests say often.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    options_.data_dir =
        absl::StrCat(testing::TempDir(), "/", info->test_suite_name(), ".", info->name());
    std::filesystem::remove_all(options_.data_dir);
    options_.listen = {"127.0.0.1:0"};
    options_.http = "127.0.0.1:0";
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Start(options_);
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    const auto channel =
        grpc::CreateChannel(coordinator_->addresses()[0], grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel);
    artifacts_ = v1::ArtifactService::NewStub(channel);
    admin_ = v1::AdminService::NewStub(channel);
    workers_ = v1::WorkerService::NewStub(channel);
    store_ = v1::StoreService::NewStub(channel);
    channel_ = channel;
  }

  // As after a crash: whatever was not acknowledged may be gone.
  void Restart() {
    coordinator_.reset();
    Start();
  }

  // A call has a deadline that only a hanging server reaches.
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(absl::ToChronoTime(SystemClock()->Now() + absl::Minutes(1)));
  }

  template <typename Stub, typename Request, typename Response>
  static absl::StatusOr<Response> Call(Stub* stub,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       const Request& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    Response response;
    const grpc::Status status = (stub->*method)(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  static v1::CreateJobRequest Replay(const std::vector<std::string>& layouts,
                                     const std::string& request_id = "") {
    v1::CreateJobRequest request;
    request.set_request_id(request_id);
    request.mutable_spec()->set_checkpoint("synthetic:tiny");
    v1::BlockReplaySpec& replay = *request.mutable_spec()->mutable_block_replay();
    for (const std::string& layout : layouts) replay.add_layouts()->set_name(layout);
    return request;
  }

  // The same of so many layouts, each another and so a task of its own.
  static v1::CreateJobRequest ReplayOfMany(int layouts) {
    v1::CreateJobRequest request = Replay({});
    for (int i = 0; i < layouts; ++i) {
      v1::Layout& layout = *request.mutable_spec()->mutable_block_replay()->add_layouts();
      layout.set_text_rows(i + 1);
      layout.set_frames(2);
      layout.set_height(6);
      layout.set_width(8);
      layout.set_audio_latents(5);
    }
    return request;
  }

  absl::StatusOr<v1::Job> Create(const v1::CreateJobRequest& request) {
    return Call(jobs_.get(), &v1::JobService::Stub::CreateJob, request);
  }

  absl::StatusOr<v1::Job> Get(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    return Call(jobs_.get(), &v1::JobService::Stub::GetJob, request);
  }

  absl::Status Register(const std::string& id, const std::string& incarnation,
                        int64_t memory_bytes = int64_t{8} << 30) {
    v1::RegisterWorkerRequest request;
    request.set_worker_id(id);
    request.set_incarnation(incarnation);
    v1::Device& device = *request.mutable_capabilities()->mutable_device();
    device.set_kind(v1::DEVICE_KIND_CPU);
    device.set_memory_bytes(memory_bytes);
    return Call(workers_.get(), &v1::WorkerService::Stub::RegisterWorker, request).status();
  }

  absl::StatusOr<v1::AcquireTaskResponse> Acquire(const std::string& id,
                                                  const std::string& incarnation,
                                                  int wait_seconds = 0) {
    v1::AcquireTaskRequest request;
    request.set_worker("workers/" + id);
    request.set_incarnation(incarnation);
    request.mutable_wait()->set_seconds(wait_seconds);
    return Call(workers_.get(), &v1::WorkerService::Stub::AcquireTask, request);
  }

  // One batch of log events numbered `first` to `last`, each saying its number.
  absl::StatusOr<int64_t> Report(const v1::Lease& lease, int64_t first, int64_t last) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ReportEventsResponse response;
    const auto stream = workers_->ReportEvents(&context, &response);
    v1::ReportEventsRequest request;
    request.set_task(lease.task());
    request.set_fencing_token(lease.fencing_token());
    for (int64_t i = first; i <= last; ++i) {
      auto& event = *request.add_events();
      event.set_client_sequence(i);
      event.mutable_event()->mutable_log()->set_message(absl::StrCat(i));
    }
    stream->Write(request);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response.acknowledged_client_sequence();
  }

  absl::StatusOr<v1::Artifact> PutArtifact(const v1::Lease& lease, const std::string& bytes,
                                           const std::string& sha256,
                                           const std::string& media_type = "") {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::Artifact artifact;
    const auto stream = workers_->PutArtifact(&context, &artifact);
    v1::PutArtifactRequest request;
    auto& header = *request.mutable_header();
    header.set_task(lease.task());
    header.set_fencing_token(lease.fencing_token());
    header.set_role(v1::ARTIFACT_ROLE_TENSORS);
    header.set_file_name("tensors-tiny.safetensors");
    header.set_media_type(media_type);
    stream->Write(request);
    request.set_chunk(bytes);
    stream->Write(request);
    request.mutable_trailer()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    request.mutable_trailer()->set_sha256(sha256);
    stream->Write(request);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return artifact;
  }

  absl::Status Complete(const v1::Lease& lease, const v1::TaskReport& report,
                        int64_t last_client_sequence = 0) {
    v1::CompleteTaskRequest request;
    request.set_task(lease.task());
    request.set_fencing_token(lease.fencing_token());
    *request.mutable_report() = report;
    request.set_last_client_sequence(last_client_sequence);
    return Call(workers_.get(), &v1::WorkerService::Stub::CompleteTask, request).status();
  }

  static v1::TaskReport Passed() {
    v1::TaskReport report;
    report.mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
    report.mutable_verdict()->set_sentence("PASSED.");
    return report;
  }

  // Reads up to `count` events, or all until the stream ends.
  std::vector<v1::JobEvent> Watch(const std::string& job, int64_t after, int count = 1 << 30) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::WatchJobRequest request;
    request.set_name(job);
    request.set_after_sequence(after);
    const auto stream = jobs_->WatchJob(&context, request);
    std::vector<v1::JobEvent> events;
    v1::JobEvent event;
    while (static_cast<int>(events.size()) < count && stream->Read(&event)) {
      events.push_back(event);
    }
    if (static_cast<int>(events.size()) == count) {
      context.TryCancel();
      while (stream->Read(&event)) {
      }
    }
    stream->Finish();
    return events;
  }

  // What grpc.health.v1 says of a service at `channel`: "SERVING", "NOT_SERVING", or what went
  // wrong.
  static std::string HealthOf(grpc::Channel* channel, const std::string& service) {
    // grpc.health.v1.HealthCheckRequest{service} and HealthCheckResponse{status}, encoded.
    const std::string bytes =
        absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    SetDeadline(&context);
    const grpc::internal::RpcMethod check("/grpc.health.v1.Health/Check",
                                          grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(channel, check, &context, request, &response);
    if (!status.ok()) return status.error_message();
    std::vector<grpc::Slice> slices;
    if (!response.Dump(&slices).ok() || slices.size() != 1) return "no answer";
    const std::string answer(slices[0].begin(), slices[0].end());
    return answer == "\x08\x01" ? "SERVING" : answer == "\x08\x02" ? "NOT_SERVING" : answer;
  }

  // For tests that set options_.clock to it.
  FakeClock fake_clock_;
  CoordinatorOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  std::unique_ptr<v1::StoreService::Stub> store_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_COORDINATOR_FIXTURE_H_
