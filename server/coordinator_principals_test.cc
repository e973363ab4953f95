// What the audit log has of principals, what they may call things, and how much of it is theirs.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/status.h"
#include "server/testing/access_fixture.h"

namespace plumbline::server {
namespace {

TEST_F(AccessTest, EveryChangeIsInTheAuditLogWithWhoMadeItAndSoIsOneThatWasDenied) {
  Start();
  const v1::Job job =
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).value();
  v1::DrainWorkerRequest drain;
  drain.set_name("workers/one");
  EXPECT_TRUE(absl::IsPermissionDenied(
      CallAs("submitter", admin_.get(), &v1::AdminService::Stub::DrainWorker, drain).status()));
  v1::ListAuditEventsResponse audit;
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  while (audit.events_size() < 2 && SystemClock()->Now() < end) {
    audit = CallAs("admin", admin_.get(), &v1::AdminService::Stub::ListAuditEvents,
                   v1::ListAuditEventsRequest())
                .value();
  }
  ASSERT_EQ(audit.events_size(), 2);
  EXPECT_EQ(audit.events(1).principal(), "submitter");
  EXPECT_EQ(audit.events(1).role(), "submitter");
  EXPECT_EQ(audit.events(1).method(), "plumbline.v1.JobService/CreateJob");
  EXPECT_EQ(audit.events(1).resource(), job.name());
  EXPECT_EQ(audit.events(0).method(), "plumbline.v1.AdminService/DrainWorker");
  EXPECT_EQ(audit.events(0).code(), static_cast<int>(grpc::StatusCode::PERMISSION_DENIED));
}

TEST_F(AccessTest, WhoIsRefusedAgainAndAgainPushesNothingOutOfTheAuditLog) {
  Start();
  ASSERT_TRUE(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).ok());
  v1::DrainWorkerRequest drain;
  drain.set_name("workers/one");
  v1::CreateUploadRequest plugin;
  plugin.set_file_name("k.so");
  plugin.set_plugin(true);
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i) {
    EXPECT_TRUE(absl::IsPermissionDenied(
        CallAs("viewer", admin_.get(), &v1::AdminService::Stub::DrainWorker, drain).status()));
    // For which the method's own role is enough.
    EXPECT_TRUE(absl::IsPermissionDenied(
        CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::CreateUpload, plugin)
            .status()));
  }
  const auto audit = [this](size_t at_least) {
    std::vector<v1::AuditEvent> events;
    const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
    do {
      const auto all = CallAs("admin", admin_.get(), &v1::AdminService::Stub::ListAuditEvents,
                              v1::ListAuditEventsRequest());
      events.assign(all->events().begin(), all->events().end());
    } while (events.size() < at_least && SystemClock()->Now() < end);
    return events;
  };
  ASSERT_EQ(audit(3).size(), 3u);
  // What was counted is not lost with the process.
  coordinator_.reset();
  Start();
  const std::vector<v1::AuditEvent> events = audit(5);
  ASSERT_EQ(events.size(), 5u);
  for (const int i : {0, 1}) {
    EXPECT_EQ(events[i].code(), static_cast<int>(grpc::StatusCode::PERMISSION_DENIED));
    EXPECT_EQ(events[i].count(), kTimes - 1);
    EXPECT_TRUE(events[i].has_first_time());
  }
}

TEST_F(AccessTest, NamesWhichAreNotWhatTheyLookLikeAreRefusedWithTheirField) {
  Start();
  const std::string hidden =
      "a\xe2\x80\xae"
      "fdp.exe";
  const auto expect_refused = [](const absl::Status& status, const std::string& field) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::vector<FieldViolation> violations = GetFieldViolations(status);
    ASSERT_EQ(violations.size(), 1u) << status;
    EXPECT_EQ(violations[0].field, field);
    EXPECT_TRUE(absl::StrContains(violations[0].description, "no control, format or invisible"))
        << status;
  };
  v1::CreateUploadRequest upload;
  upload.set_file_name(hidden);
  expect_refused(
      CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::CreateUpload, upload)
          .status(),
      "file_name");
  const v1::Job job =
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).value();
  v1::CancelJobRequest cancel;
  cancel.set_name(job.name());
  cancel.set_reason(hidden);
  expect_refused(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CancelJob, cancel).status(),
      "reason");
  v1::DrainWorkerRequest drain;
  drain.set_name("workers/one");
  drain.set_reason(hidden);
  expect_refused(
      CallAs("admin", admin_.get(), &v1::AdminService::Stub::DrainWorker, drain).status(),
      "reason");
  v1::RegisterWorkerRequest worker;
  worker.set_worker_id("one");
  worker.set_incarnation("1");
  worker.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  worker.mutable_capabilities()->mutable_device()->set_memory_bytes(1);
  for (const bool attempt : {false, true}) {
    v1::RegisterWorkerRequest bad = worker;
    (*(attempt ? bad.mutable_attempt_labels() : bad.mutable_labels()))["rack"] = hidden;
    expect_refused(
        CallAs("worker", workers_.get(), &v1::WorkerService::Stub::RegisterWorker, bad).status(),
        attempt ? "attempt_labels[rack]" : "labels[rack]");
  }
  v1::CreateJobRequest placed = Replay({"tiny"});
  placed.mutable_spec()->mutable_placement()->set_device_class(hidden);
  expect_refused(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, placed).status(),
      "spec.placement.device_class");
  v1::CreateJobRequest path = Replay({"tiny"});
  path.mutable_spec()->set_checkpoint(hidden);
  expect_refused(CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, path).status(),
                 "spec.checkpoint");
}

TEST_F(AccessTest, PluginsAreUploadedByAdminsAlone) {
  options_.takes_plugin_uploads = true;
  Start();
  v1::CreateUploadRequest request;
  request.set_file_name("k.so");
  request.set_size_bytes(10);
  request.set_plugin(true);
  const auto create = &v1::ArtifactService::Stub::CreateUpload;
  EXPECT_TRUE(
      absl::IsPermissionDenied(CallAs("submitter", artifacts_.get(), create, request).status()));
  EXPECT_TRUE(CallAs("admin", artifacts_.get(), create, request).ok());
  request.set_plugin(false);
  EXPECT_TRUE(CallAs("submitter", artifacts_.get(), create, request).ok());
}

TEST_F(AccessTest, AnUploadBelongsToWhoBeganIt) {
  Add("other", "submitter");
  Save();
  Start();
  v1::CreateUploadRequest request;
  request.set_file_name("f");
  request.set_size_bytes(1);
  v1::WriteUploadRequest write;
  write.set_name(
      CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::CreateUpload, request)
          ->name());
  write.set_data("x");
  const auto method = &v1::ArtifactService::Stub::WriteUpload;
  EXPECT_TRUE(absl::IsNotFound(CallAs("other", artifacts_.get(), method, write).status()));
  EXPECT_TRUE(CallAs("submitter", artifacts_.get(), method, write).ok());
}

TEST_F(AccessTest, RatesStreamsAndUploadsOfOnePrincipalAreLimited) {
  options_.clock = &fake_clock_;
  options_.limits.calls_per_second = 2;
  options_.limits.streams = 3;
  options_.limits.open_upload_bytes = 100;
  Start();
  const auto list = [this](const std::string& name) {
    return CallAs(name, jobs_.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest())
        .status();
  };
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(list("viewer").ok()) << i;
  const absl::Status limited = list("viewer");
  EXPECT_TRUE(absl::IsResourceExhausted(limited)) << limited;
  EXPECT_EQ(GetReason(limited), "RATE_LIMIT");
  EXPECT_TRUE(list("submitter").ok());
  fake_clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(list("viewer").ok());
  EXPECT_TRUE(list("viewer").ok());
  EXPECT_FALSE(list("viewer").ok());

  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchJobsResponse>>> streams;
  const auto open = [&] {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    SetDeadline(contexts.back().get());
    contexts.back()->AddMetadata("authorization", "Bearer " + tokens_["admin"]);
    streams.push_back(jobs_->WatchJobs(contexts.back().get(), v1::WatchJobsRequest()));
    v1::WatchJobsResponse response;
    return streams.back()->Read(&response);
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(open());
  EXPECT_FALSE(open());
  EXPECT_EQ(GetReason(FromGrpcStatus(streams.back()->Finish())), "QUOTA");
  // One that ends makes room.
  contexts[0]->TryCancel();
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  bool opened = false;
  while (!opened && SystemClock()->Now() < end) {
    fake_clock_.Advance(absl::Seconds(1));
    opened = open();
  }
  EXPECT_TRUE(opened);
  for (auto& context : contexts) context->TryCancel();

  v1::CreateUploadRequest upload;
  upload.set_file_name("f");
  upload.set_size_bytes(60);
  const auto create = &v1::ArtifactService::Stub::CreateUpload;
  fake_clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(CallAs("submitter", artifacts_.get(), create, upload).ok());
  const absl::Status full = CallAs("submitter", artifacts_.get(), create, upload).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(GetReason(full), "QUOTA");
  EXPECT_TRUE(CallAs("admin", artifacts_.get(), create, upload).ok());
}

}  // namespace
}  // namespace plumbline::server
