// Who may call what: every method with every kind of caller, against docs/access.md.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <httplib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/access/access_file.h"
#include "common/access/token.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/sha256.h"
#include "common/status.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "server/testing/access_fixture.h"

namespace plumbline::server {
namespace {

using google::protobuf::MethodDescriptor;

std::vector<const MethodDescriptor*> Methods() {
  std::vector<const MethodDescriptor*> methods;
  for (const auto* file :
       {v1::GetJobRequest::descriptor()->file(), v1::GetWorkerRequest::descriptor()->file(),
        v1::RegisterWorkerRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

// The generated table of docs/access.md: method -> words of its "yes" columns.
std::map<std::string, std::set<std::string>> DocumentedTable() {
  std::map<std::string, std::set<std::string>> table;
  std::ifstream file("docs/access.md");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != 8 || !absl::StrContains(cells[1], "Service/")) continue;
    std::set<std::string>& yes = table[std::string(absl::StripAsciiWhitespace(cells[1]))];
    for (size_t i = 0; i < kRoles.size(); ++i) {
      if (absl::StrContains(cells[i + 2], "yes")) yes.insert(kRoles[i]);
    }
    if (absl::StrContains(cells[6], "yes")) yes.insert("audit");
  }
  return table;
}

bool IsLetIn(const grpc::Status& status) {
  return status.error_code() != grpc::StatusCode::UNAUTHENTICATED &&
         status.error_code() != grpc::StatusCode::PERMISSION_DENIED;
}

TEST_F(AccessTest, EveryMethodWithEveryRole) {
  Start();
  const std::map<std::string, std::set<std::string>> documented = DocumentedTable();
  EXPECT_EQ(documented.size(), Methods().size());
  for (const MethodDescriptor* const method : Methods()) {
    const auto row = documented.find(absl::StrCat(method->service()->name(), "/", method->name()));
    ASSERT_NE(row, documented.end()) << method->full_name();
    for (const char* const role : kRoles) {
      const grpc::Status status = CallAs(role, *method);
      const bool may = row->second.count(role) > 0;
      EXPECT_EQ(IsLetIn(status), may)
          << PathOf(*method) << " as " << role << ": " << status.error_message();
      if (!may) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
        EXPECT_EQ(GetReason(FromGrpcStatus(status)), "PERMISSION_DENIED");
      }
      // Whatever comes of it, an error says so in its details.
      if (!status.ok() && status.error_code() != grpc::StatusCode::CANCELLED) {
        EXPECT_NE(GetReason(FromGrpcStatus(status)), "") << PathOf(*method);
      }
      if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) {
        EXPECT_FALSE(GetFieldViolations(FromGrpcStatus(status)).empty()) << PathOf(*method);
        EXPECT_NE(GetFieldViolations(FromGrpcStatus(status))[0].field, "") << PathOf(*method);
      }
    }
  }
}

TEST_F(AccessTest, EveryMethodWithoutAGoodToken) {
  Start();
  std::string wrong = tokens_["admin"];
  wrong.back() = wrong.back() == 'a' ? 'b' : 'a';
  const std::vector<std::string> headers = {
      "",
      absl::StrCat("Bearer ", wrong),
      absl::StrCat("Bearer ", tokens_["revoked"]),
      absl::StrCat("Bearer ", tokens_["expired"]),
      tokens_["admin"],
      absl::StrCat("bearer ", tokens_["admin"]),
      "Bearer ",
      "Basic YTpi",
      absl::StrCat("Bearer ", tokens_["admin"], " "),
  };
  for (const MethodDescriptor* const method : Methods()) {
    for (const std::string& header : headers) {
      const grpc::Status status = CallMethod(PathOf(*method), header);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
          << PathOf(*method) << " with \"" << header << "\": " << status.error_message();
      EXPECT_EQ(GetReason(FromGrpcStatus(status)), "UNAUTHENTICATED");
    }
  }
  // What is no method says so to anybody.
  const grpc::Status none = CallMethod("/plumbline.v1.JobService/None", "");
  EXPECT_EQ(none.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(GetReason(FromGrpcStatus(none)), "UNIMPLEMENTED");
}

TEST_F(AccessTest, WhatCannotBeDecodedIsABadRequestOfWhoMayCall) {
  Start();
  for (const MethodDescriptor* const method : Methods()) {
    // Bytes that are no message, and one whose string is no UTF-8.
    for (const std::string message : {"\xff\xff\xff\xff", "\x0a\x01\xff"}) {
      const grpc::Status nobody = CallMethod(PathOf(*method), "", message);
      EXPECT_EQ(nobody.error_code(), grpc::StatusCode::UNAUTHENTICATED) << PathOf(*method);
      if (method->client_streaming()) continue;
      const bool has_string = method->input_type()->FindFieldByNumber(1) != nullptr &&
                              method->input_type()->FindFieldByNumber(1)->type() ==
                                  google::protobuf::FieldDescriptor::TYPE_STRING;
      if (message[0] == '\x0a' && !has_string) continue;
      const absl::Status status = FromGrpcStatus(
          CallMethod(PathOf(*method), absl::StrCat("Bearer ", tokens_["admin"]), message));
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << PathOf(*method) << ": " << status;
      EXPECT_NE(GetReason(status), "") << PathOf(*method);
      EXPECT_FALSE(GetFieldViolations(status).empty()) << PathOf(*method);
    }
  }
}

TEST_F(AccessTest, ATokenIsGoodFromOneReloadToAnother) {
  Start();
  Add("late", "viewer");
  const MethodDescriptor* const method =
      v1::GetJobRequest::descriptor()->file()->service(0)->FindMethodByName("ListJobs");
  EXPECT_FALSE(IsLetIn(CallAs("late", *method)));
  Save();
  const auto await = [&](bool let_in) {
    const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
    while (IsLetIn(CallAs("late", *method)) != let_in && SystemClock()->Now() < end) {
    }
    EXPECT_EQ(IsLetIn(CallAs("late", *method)), let_in);
  };
  await(true);
  // A file that cannot be read changes nothing.
  ASSERT_TRUE(WriteFileAtomically(path_, "{").ok());
  EXPECT_TRUE(IsLetIn(CallAs("late", *method)));
  ASSERT_TRUE(RevokeAccess("late", SystemClock()->Now(), &file_).ok());
  Save();
  await(false);
}

// Who watches, and whose token is revoked or expires, is told why; others watch on.
TEST_F(AccessTest, AStreamEndsSoonAfterItsTokenIsGoodNoMore) {
  options_.clock = &fake_clock_;
  for (const char* const name : {"late", "gone"}) Add(name, "viewer");
  Add("expires", "viewer", fake_clock_.Now() + absl::Minutes(5));
  Save();
  Start();
  struct Watcher {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchJobsResponse>> stream;
  };
  std::map<std::string, Watcher> watchers;
  v1::WatchJobsResponse response;
  for (const char* name : {"late", "gone", "expires", "viewer"}) {
    Watcher& watcher = watchers[name];
    SetDeadline(&watcher.context);
    watcher.context.AddMetadata("authorization", "Bearer " + tokens_[name]);
    watcher.stream = jobs_->WatchJobs(&watcher.context, v1::WatchJobsRequest());
    ASSERT_TRUE(watcher.stream->Read(&response)) << name;
  }
  const auto ends = [&](const std::string& name) {
    while (watchers[name].stream->Read(&response)) {
    }
    const absl::Status status = FromGrpcStatus(watchers[name].stream->Finish());
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << name << ": " << status;
    EXPECT_EQ(GetReason(status), "UNAUTHENTICATED") << name;
  };
  ASSERT_TRUE(RevokeAccess("late", fake_clock_.Now(), &file_).ok());
  Save();
  ends("late");
  file_.entries.erase(std::find_if(file_.entries.begin(), file_.entries.end(),
                                   [](const AccessEntry& entry) { return entry.name == "gone"; }));
  Save();
  ends("gone");
  fake_clock_.Advance(absl::Minutes(5));
  ends("expires");
  // The one that is left hears of what happens.
  ASSERT_TRUE(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).ok());
  while (!response.has_job()) ASSERT_TRUE(watchers["viewer"].stream->Read(&response));
  watchers["viewer"].context.TryCancel();
}

// A stream that waits for its client, which says nothing, is cancelled.
TEST_F(AccessTest, AStreamOfAWorkerWhoseTokenIsRevokedIsCancelled) {
  Start();
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  context.AddMetadata("authorization", "Bearer " + tokens_["worker"]);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/plumbline.v1.WorkerService/ReportEvents", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(RevokeAccess("worker", SystemClock()->Now(), &file_).ok());
  Save();
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_NE(status.error_code(), grpc::StatusCode::OK);
  EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  queue.Shutdown();
}

// A worker that waits for a task while its token is revoked gets none; another one does.
TEST_F(AccessTest, ALongPollAfterTheTokenWasRevokedGetsNoTask) {
  Start();
  const auto acquire = [this](const std::string& name) {
    v1::RegisterWorkerRequest worker;
    worker.set_worker_id(name);
    worker.set_incarnation("one");
    v1::Device& device = *worker.mutable_capabilities()->mutable_device();
    device.set_kind(v1::DEVICE_KIND_CPU);
    device.set_memory_bytes(int64_t{8} << 30);
    EXPECT_TRUE(
        CallAs(name, workers_.get(), &v1::WorkerService::Stub::RegisterWorker, worker).ok());
    v1::AcquireTaskRequest request;
    request.set_worker("workers/" + name);
    request.set_incarnation("one");
    request.mutable_wait()->set_seconds(30);
    return CallAs(name, workers_.get(), &v1::WorkerService::Stub::AcquireTask, request);
  };
  auto waiting = std::async(std::launch::async, acquire, "worker");
  // It waits.
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  const auto registered = [this] {
    return CallAs("viewer", admin_.get(), &v1::AdminService::Stub::ListWorkers,
                  v1::ListWorkersRequest())
        ->workers_size();
  };
  while (registered() == 0 && SystemClock()->Now() < end) {
  }
  ASSERT_TRUE(RevokeAccess("worker", SystemClock()->Now(), &file_).ok());
  Save();
  const auto heartbeat = [this] {
    return CallAs("worker", workers_.get(), &v1::WorkerService::Stub::Heartbeat,
                  v1::HeartbeatRequest())
        .status();
  };
  while (!absl::IsUnauthenticated(heartbeat()) && SystemClock()->Now() < end) {
  }
  ASSERT_TRUE(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).ok());
  const absl::StatusOr<v1::AcquireTaskResponse> refused = waiting.get();
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  const absl::StatusOr<v1::AcquireTaskResponse> taken = acquire("admin");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->has_assignment());
}

TEST_F(AccessTest, ATicketOpensOneArtifactForSomeMinutesAndNothingElse) {
  options_.clock = &fake_clock_;
  Start();
  const auto upload = [this](const std::string& bytes) {
    v1::CreateUploadRequest create;
    create.set_file_name("f.bin");
    create.set_size_bytes(static_cast<int64_t>(bytes.size()));
    v1::WriteUploadRequest write;
    write.set_name(
        CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::CreateUpload, create)
            ->name());
    write.set_data(bytes);
    EXPECT_TRUE(
        CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::WriteUpload, write).ok());
    v1::FinishUploadRequest finish;
    finish.set_name(write.name());
    finish.set_size_bytes(create.size_bytes());
    finish.set_sha256(Sha256Hex(bytes));
    return CallAs("submitter", artifacts_.get(), &v1::ArtifactService::Stub::FinishUpload, finish)
        ->name();
  };
  const std::string first = upload("first");
  const std::string second = upload("second");
  v1::CreateTicketRequest ask;
  ask.set_name(first);
  const v1::Ticket ticket =
      CallAs("viewer", artifacts_.get(), &v1::ArtifactService::Stub::CreateTicket, ask).value();
  httplib::Client http("http://" + coordinator_->http_address());
  const auto status = [&http](const std::string& target, httplib::Headers headers = {}) {
    const auto result = http.Get(target.c_str(), headers);
    return result ? result->status : 0;
  };
  EXPECT_EQ(http.Get(ticket.url_path().c_str())->body, "first");
  EXPECT_EQ(status(absl::StrCat("/", second, "?ticket=", ticket.ticket())), 403);
  EXPECT_EQ(status(absl::StrCat("/", first)), 403);
  EXPECT_EQ(status(absl::StrCat("/", first, "?ticket=")), 403);
  EXPECT_EQ(status(absl::StrCat("/", first, "?ticket=9", ticket.ticket())), 403);
  EXPECT_EQ(status(absl::StrCat("/", first, "?ticket=", ticket.ticket(), "A")), 403);
  // Neither is good for the other.
  EXPECT_EQ(status(absl::StrCat("/", first, "?ticket=", tokens_["admin"])), 403);
  EXPECT_EQ(status(absl::StrCat("/", second), {{"Authorization", "Bearer " + tokens_["admin"]}}),
            403);
  for (const MethodDescriptor* const method : Methods()) {
    EXPECT_EQ(CallMethod(PathOf(*method), "Bearer " + ticket.ticket()).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
  fake_clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(status(ticket.url_path()), 403);
}

TEST_F(AccessTest, OverHttpTheSameTokensDecide) {
  Start();
  httplib::Client http("http://" + coordinator_->http_address());
  const auto call = [&http](const httplib::Headers& headers) {
    const auto result = http.Post("/plumbline.v1.JobService/ListJobs", headers,
                                  std::string(5, '\0'), "application/grpc-web");
    return result ? result->body : "";
  };
  EXPECT_TRUE(absl::StrContains(call({}), "grpc-status: 16\r\n"));
  EXPECT_TRUE(
      absl::StrContains(call({{"Authorization", "Bearer nonsense"}}), "grpc-status: 16\r\n"));
  EXPECT_TRUE(absl::StrContains(call({{"Authorization", "Bearer " + tokens_["worker"]}}),
                                "grpc-status: 7\r\n"));
  EXPECT_TRUE(absl::StrContains(call({{"Authorization", "Bearer " + tokens_["viewer"]}}),
                                "grpc-status: 0\r\n"));
  // What only the server itself may say.
  EXPECT_TRUE(
      absl::StrContains(call({{"plumbline-certificate", "x.admin"}}), "grpc-status: 16\r\n"));
  EXPECT_EQ(http.Get("/healthz")->status, 200);
}

TEST_F(AccessTest, NoSecretIsInALogAMetricOrAnAnswer) {
  std::FILE* const log = std::tmpfile();
  LogOptions logging;
  logging.level = LogLevel::kDebug;
  logging.file = log;
  ConfigureLogging(logging);
  Start();
  ASSERT_TRUE(
      CallAs("submitter", jobs_.get(), &v1::JobService::Stub::CreateJob, Replay({"tiny"})).ok());
  std::string answers;
  for (const auto& [name, token] : tokens_) {
    for (const MethodDescriptor* const method : Methods()) {
      const grpc::Status status = CallMethod(PathOf(*method), "Bearer " + token);
      absl::StrAppend(&answers, status.error_message(), status.error_details());
      const grpc::Status bare = CallMethod(PathOf(*method), token);
      absl::StrAppend(&answers, bare.error_message(), bare.error_details());
    }
  }
  httplib::Client http("http://" + coordinator_->http_address());
  const std::string metrics = http.Get("/metrics")->body;
  http.Get(("/artifacts/" + tokens_["admin"] + "?ticket=" + tokens_["admin"]).c_str());
  answers += http.Get(("/" + tokens_["admin"]).c_str())->body;
  v1::ListAuditEventsRequest all;
  all.set_page_size(1000);
  const std::string audit =
      CallAs("admin", admin_.get(), &v1::AdminService::Stub::ListAuditEvents, all)
          ->SerializeAsString();
  coordinator_.reset();
  ConfigureLogging(LogOptions());
  std::string logged(static_cast<size_t>(std::ftell(log)), '\0');
  std::rewind(log);
  ASSERT_EQ(std::fread(logged.data(), 1, logged.size(), log), logged.size());
  std::fclose(log);
  EXPECT_FALSE(logged.empty());
  for (const auto& [name, token] : tokens_) {
    const std::string secret(ParseToken(token)->secret);
    for (const std::string* place :
         std::vector<const std::string*>{&logged, &metrics, &answers, &audit}) {
      EXPECT_FALSE(absl::StrContains(*place, secret)) << name;
    }
  }
}

TEST_F(AccessTest, AccessFilesThatLetNobodyInOrCannotBeReadRefuseToStart) {
  for (const std::string text : {"", "{", "{\"access\": []}", "{\"access\": [{}]}"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    const absl::Status status = Coordinator::Start(options_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "access-file")) << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
  }
  options_.access_file = path_ + ".none";
  EXPECT_TRUE(absl::IsInvalidArgument(Coordinator::Start(options_).status()));
}

}  // namespace
}  // namespace plumbline::server
