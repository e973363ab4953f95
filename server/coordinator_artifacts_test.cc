// Uploads, and the artifacts of tasks, through gRPC and HTTP.
#include <httplib.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/store/store_check.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

class ArtifactsTest : public CoordinatorTest {
 protected:
  absl::StatusOr<v1::Upload> CreateUpload(const std::string& bytes, bool announce_digest = false) {
    v1::CreateUploadRequest request;
    request.set_file_name("capture.safetensors");
    request.set_size_bytes(static_cast<int64_t>(bytes.size()));
    if (announce_digest) request.set_sha256(Sha256Hex(bytes));
    return Call(artifacts_.get(), &v1::ArtifactService::Stub::CreateUpload, request);
  }

  absl::StatusOr<v1::Upload> WriteUpload(const std::string& name, int64_t offset,
                                         const std::string& bytes) {
    v1::WriteUploadRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_data(bytes);
    return Call(artifacts_.get(), &v1::ArtifactService::Stub::WriteUpload, request);
  }

  absl::StatusOr<v1::Artifact> FinishUpload(const std::string& name, int64_t size,
                                            const std::string& sha256) {
    v1::FinishUploadRequest request;
    request.set_name(name);
    request.set_size_bytes(size);
    request.set_sha256(sha256);
    return Call(artifacts_.get(), &v1::ArtifactService::Stub::FinishUpload, request);
  }

  absl::StatusOr<std::string> Download(const std::string& name, int64_t offset, int64_t length) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetArtifactRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_length(length);
    const auto stream = artifacts_->GetArtifact(&context, request);
    std::string bytes;
    v1::GetArtifactResponse part;
    v1::StreamTrailer trailer;
    while (stream->Read(&part)) {
      bytes += part.chunk();
      if (part.has_trailer()) trailer = part.trailer();
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    EXPECT_EQ(trailer.size_bytes(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(trailer.sha256(), Sha256Hex(bytes));
    return bytes;
  }

  httplib::Client Http() const { return httplib::Client("http://" + coordinator_->http_address()); }
};

TEST_F(ArtifactsTest, UploadsAreCheckedAndKept) {
  Start();
  const std::string bytes(3000000, 'x');
  const std::string upload = CreateUpload(bytes)->name();
  EXPECT_EQ(WriteUpload(upload, 0, bytes.substr(0, 1000000))->size_bytes(), 1000000);
  EXPECT_EQ(WriteUpload(upload, 0, bytes.substr(0, 1000000))->size_bytes(), 1000000);
  const absl::Status hole = WriteUpload(upload, 2000000, bytes.substr(2000000)).status();
  EXPECT_EQ(GetReason(hole), "WRONG_OFFSET") << hole;
  EXPECT_TRUE(absl::IsInvalidArgument(WriteUpload(upload, 2999999, "ab").status()));
  Restart();
  EXPECT_EQ(WriteUpload(upload, 1000000, bytes.substr(1000000, 1000000))->size_bytes(), 2000000);
  EXPECT_EQ(WriteUpload(upload, 2000000, bytes.substr(2000000))->size_bytes(), 3000000);
  const std::string artifact = FinishUpload(upload, 3000000, Sha256Hex(bytes))->name();
  EXPECT_EQ(Download(artifact, 0, 0).value(), bytes);
  EXPECT_EQ(Download(artifact, 2999990, 100)->size(), 10u);
  EXPECT_EQ(CreateUpload(bytes, /*announce_digest=*/true)->artifact(), artifact);
  EXPECT_TRUE(absl::IsNotFound(WriteUpload(upload, 0, "x").status()));
  Restart();
  EXPECT_EQ(Download(artifact, 0, 0).value(), bytes);
}

TEST_F(ArtifactsTest, TheSameFileUploadedTwiceIsKeptOnce) {
  Start();
  // Neither knows of the other until it finishes, whether its digest is announced or not.
  for (const bool announce : {false, true}) {
    const std::string bytes = announce ? "announced" : "not announced";
    std::vector<std::string> uploads;
    for (int i = 0; i < 4; ++i) {
      uploads.push_back(CreateUpload(bytes, announce)->name());
      ASSERT_TRUE(WriteUpload(uploads.back(), 0, bytes).ok());
    }
    std::vector<std::string> artifacts(uploads.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < uploads.size(); ++i) {
      threads.emplace_back([&, i] {
        const absl::StatusOr<v1::Artifact> finished =
            FinishUpload(uploads[i], static_cast<int64_t>(bytes.size()), Sha256Hex(bytes));
        if (finished.ok()) artifacts[i] = finished->name();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Download(artifacts[0], 0, 0).value(), bytes);
    for (const std::string& artifact : artifacts) EXPECT_EQ(artifact, artifacts[0]);
  }
  coordinator_.reset();
  const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(options_.data_dir);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->problem_count, 0) << absl::StrJoin(check->problems, "\n");
  EXPECT_EQ(check->artifacts, 2);
}

TEST_F(ArtifactsTest, UploadsWithAWrongDigestAreGone) {
  Start();
  const std::string upload = CreateUpload("right")->name();
  ASSERT_TRUE(WriteUpload(upload, 0, "wrong").ok());
  const absl::Status status = FinishUpload(upload, 5, Sha256Hex("right")).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(GetReason(status), "DIGEST_MISMATCH");
  EXPECT_TRUE(absl::IsNotFound(FinishUpload(upload, 5, Sha256Hex("wrong")).status()));
  EXPECT_TRUE(std::filesystem::is_empty(options_.data_dir + "/uploads"));
  EXPECT_TRUE(std::filesystem::is_empty(options_.data_dir + "/artifacts"));
}

TEST_F(ArtifactsTest, OfTasksAreCheckedReplacedAndDeletedWithTheJob) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  const std::string job = Create(Replay({"tiny"}))->name();
  const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
  EXPECT_TRUE(absl::IsDataLoss(PutArtifact(lease, "first", Sha256Hex("other")).status()));
  // What browsers are told begins no line of its own.
  for (const char* const type : {"text", "text/", "text/html; a=b", "a/b\r\nSet-Cookie: c"}) {
    const absl::Status bad = PutArtifact(lease, "first", Sha256Hex("first"), type).status();
    EXPECT_TRUE(absl::IsInvalidArgument(bad)) << bad;
    EXPECT_EQ(GetFieldViolations(bad)[0].field, "header.media_type");
  }
  const std::string first =
      PutArtifact(lease, "first", Sha256Hex("first"), "image/svg+xml")->name();
  const std::string second = PutArtifact(lease, "second", Sha256Hex("second"))->name();
  EXPECT_TRUE(absl::IsNotFound(Download(first, 0, 0).status()));
  EXPECT_EQ(Download(second, 0, 0).value(), "second");
  ASSERT_EQ(Get(job)->artifacts_size(), 1);
  EXPECT_EQ(Get(job)->artifacts(0).name(), second);

  v1::CreateTicketRequest ask;
  ask.set_name(second);
  const v1::Ticket ticket =
      Call(artifacts_.get(), &v1::ArtifactService::Stub::CreateTicket, ask).value();
  httplib::Client http = Http();
  EXPECT_EQ(http.Get(ticket.url_path().c_str())->body, "second");
  const auto range = http.Get(ticket.url_path().c_str(), {{"Range", "bytes=1-3"}});
  EXPECT_EQ(range->status, 206);
  EXPECT_EQ(range->body, "eco");
  EXPECT_EQ(range->get_header_value("Content-Range"), "bytes 1-3/6");
  EXPECT_EQ(http.Get(("/" + second).c_str())->status, 403);
  EXPECT_EQ(http.Get(("/" + first + "?ticket=" + ticket.ticket()).c_str())->status, 403);

  ASSERT_TRUE(Complete(lease, Passed()).ok());
  v1::DeleteJobRequest deletion;
  deletion.set_name(job);
  ASSERT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::DeleteJob, deletion).ok());
  EXPECT_TRUE(absl::IsNotFound(Download(second, 0, 0).status()));
  EXPECT_TRUE(std::filesystem::is_empty(options_.data_dir + "/artifacts"));
}

}  // namespace
}  // namespace plumbline::server
