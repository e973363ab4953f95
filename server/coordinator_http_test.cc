#include <httplib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/access/access_file.h"
#include "common/raw_client.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kDeadline = absl::Minutes(1);

// A frame of gRPC-Web.
struct Frame {
  bool trailers = false;
  std::string bytes;
};

std::string FrameOf(const std::string& message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string frame(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(size >> shift));
  return frame + message;
}

std::vector<Frame> FramesOf(absl::string_view body) {
  std::vector<Frame> frames;
  while (body.size() >= 5) {
    size_t size = 0;
    for (int i = 1; i < 5; ++i) size = size << 8 | static_cast<unsigned char>(body[i]);
    frames.push_back({(body[0] & 0x80) != 0, std::string(body.substr(5, size))});
    body.remove_prefix(std::min(body.size(), 5 + size));
  }
  return frames;
}

class HttpTest : public CoordinatorTest {
 protected:
  httplib::Client Http() const { return httplib::Client("http://" + coordinator_->http_address()); }

  template <typename Request>
  std::vector<Frame> Post(const std::string& method, const Request& request,
                          httplib::Headers headers = {}) {
    const auto result =
        Http().Post(("/plumbline.v1." + method).c_str(), headers,
                    FrameOf(request.SerializeAsString()), "application/grpc-web+proto");
    EXPECT_TRUE(result);
    if (!result) return {};
    EXPECT_EQ(result->status, 200);
    EXPECT_EQ(result->get_header_value("Content-Type"), "application/grpc-web+proto");
    return FramesOf(result->body);
  }

  // A connection that has asked for a job's events, and reads nothing by itself.
  RawClient OpenWatch(const std::string& job) {
    const std::vector<std::string> parts = absl::StrSplit(coordinator_->http_address(), ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port));
    RawClient client(port);
    v1::WatchJobRequest request;
    request.set_name(job);
    const std::string body = FrameOf(request.SerializeAsString());
    client.Send(
        absl::StrCat("POST /plumbline.v1.JobService/WatchJob HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Type: application/grpc-web+proto\r\nContent-Length: ",
                     body.size(), "\r\n\r\n", body));
    return client;
  }

  int Watchers() const {
    const std::string metrics = Http().Get("/metrics")->body;
    const std::string name = "\nplumbline_watchers ";
    int watchers = -1;
    const size_t at = metrics.find(name);
    const std::string rest = metrics.substr(at + name.size());
    EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find('\n')), &watchers)) << metrics;
    return watchers;
  }

  void AwaitWatchers(int count) {
    const absl::Time end = absl::Now() + kDeadline;
    while (Watchers() != count && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_EQ(Watchers(), count);
  }
};

TEST_F(HttpTest, UnaryAndStreamingCallsInBothForms) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  const std::vector<Frame> created = Post("JobService/CreateJob", Replay({"tiny"}));
  ASSERT_EQ(created.size(), 2u) << created[0].bytes;
  v1::Job job;
  ASSERT_TRUE(job.ParseFromString(created[0].bytes));
  EXPECT_EQ(Get(job.name())->name(), job.name());
  EXPECT_TRUE(created[1].trailers);
  EXPECT_EQ(created[1].bytes, "grpc-status: 0\r\n");

  const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
  ASSERT_TRUE(Report(lease, 1, 20).ok());
  ASSERT_TRUE(Complete(lease, Passed(), 20).ok());
  v1::WatchJobRequest watch;
  watch.set_name(job.name());
  const std::vector<Frame> events = Post("JobService/WatchJob", watch);
  const std::vector<v1::JobEvent> expected = Watch(job.name(), 0);
  ASSERT_EQ(events.size(), expected.size() + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(events[i].bytes, expected[i].SerializeAsString());
  }
  EXPECT_EQ(events.back().bytes, "grpc-status: 0\r\n");

  const auto text = Http().Post("/plumbline.v1.JobService/WatchJob",
                                absl::Base64Escape(FrameOf(watch.SerializeAsString())),
                                "application/grpc-web-text");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->get_header_value("Content-Type"), "application/grpc-web-text+proto");
  // Each frame is padded by itself.
  std::string decoded;
  for (size_t at = 0; at < text->body.size(); at += 4) {
    std::string four;
    ASSERT_TRUE(absl::Base64Unescape(text->body.substr(at, 4), &four));
    decoded += four;
  }
  EXPECT_EQ(FramesOf(decoded).size(), events.size());
}

TEST_F(HttpTest, ErrorsCarryTheirDetails) {
  Start();
  v1::CreateJobRequest request = Replay({"no such layout"});
  const std::vector<Frame> refused = Post("JobService/CreateJob", request);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_TRUE(absl::StrContains(refused[0].bytes, "grpc-status: 3\r\n"));
  EXPECT_TRUE(absl::StrContains(refused[0].bytes, "grpc-status-details-bin: "));
  for (const char* method :
       {"JobService/None", "JobService/", "JobService/a%20b", "JobService/a/b"}) {
    const std::vector<Frame> none = Post(method, request);
    ASSERT_EQ(none.size(), 1u) << method;
    EXPECT_TRUE(absl::StrContains(none[0].bytes, "grpc-status: 12\r\n")) << none[0].bytes;
  }
  EXPECT_EQ(Http().Post("/plumbline.v1.None/CreateJob", "", "application/grpc-web")->status, 404);
  EXPECT_EQ(Http().Post("/plumbline.v1.JobService/CreateJob", "", "application/json")->status, 415);
  const auto odd = Http().Post("/plumbline.v1.JobService/CreateJob", {{"grpc-timeout", "soon"}},
                               FrameOf(""), "application/grpc-web");
  EXPECT_TRUE(absl::StrContains(odd->body, "grpc-status: 3\r\n"));
  const auto token =
      Http().Post("/plumbline.v1.JobService/CreateJob", {{"authorization", "Bearer \xff"}},
                  FrameOf(""), "application/grpc-web");
  ASSERT_TRUE(token);
  EXPECT_FALSE(absl::StrContains(token->body, "grpc-status: 0\r\n"));
}

TEST_F(HttpTest, ADeadlineEndsAStream) {
  Start();
  v1::WatchJobRequest watch;
  watch.set_name(Create(Replay({"tiny"}))->name());
  const std::vector<Frame> frames = Post("JobService/WatchJob", watch, {{"grpc-timeout", "200m"}});
  ASSERT_FALSE(frames.empty());
  EXPECT_TRUE(absl::StrContains(frames.back().bytes, "grpc-status: 4\r\n")) << frames.back().bytes;
}

TEST_F(HttpTest, AHundredStreamsBesideEachOtherAndAClientThatLeavesFreesItsOwn) {
  Start();
  const std::string job = Create(Replay({"tiny"}))->name();
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(OpenWatch(job));
  for (const RawClient& client : clients) {
    EXPECT_TRUE(absl::EndsWith(client.ReadUntil(job), job));
  }
  AwaitWatchers(100);
  EXPECT_EQ(Http().Get("/healthz")->status, 200);
  for (int i = 0; i < 60; ++i) clients.pop_back();
  AwaitWatchers(40);
  // The others are told what happens.
  v1::CancelJobRequest cancel;
  cancel.set_name(job);
  ASSERT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::CancelJob, cancel).ok());
  for (const RawClient& client : clients) {
    EXPECT_TRUE(absl::EndsWith(client.ReadUntil("grpc-status: 0"), "grpc-status: 0"));
  }
  clients.clear();
  AwaitWatchers(0);
}

TEST_F(HttpTest, ShutdownEndsStreamsOfClientsThatReadNothing) {
  Start();
  const std::string job = Create(Replay({"tiny"}))->name();
  const RawClient client = OpenWatch(job);
  AwaitWatchers(1);
  // Were it waited for, this would not end: the job's events go on.
  coordinator_.reset();
}

TEST_F(HttpTest, OtherOriginsAndHostsAreRefused) {
  Start();
  EXPECT_EQ(Http().Get("/healthz", {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(Http().Get("/healthz", {{"Origin", "null"}})->status, 403);
  EXPECT_EQ(Http().Get("/healthz", {{"Origin", "http://" + coordinator_->http_address()}})->status,
            200);
  EXPECT_EQ(Http().Get("/healthz", {{"Host", "evil.example:7434"}})->status, 421);
  EXPECT_EQ(Http().Get("/healthz", {{"Host", "localhost:1"}})->status, 200);
  // Without an allowed origin there is no preflight.
  const auto preflight = Http().Options("/plumbline.v1.JobService/ListJobs");
  ASSERT_TRUE(preflight);
  EXPECT_EQ(preflight->status, 405);
  EXPECT_FALSE(preflight->has_header("Access-Control-Allow-Origin"));
}

// Authentication keeps nobody from a page whose name was pointed at this machine.
TEST_F(HttpTest, AServerOfThisMachineAloneIsSoWithTokensToo) {
  AccessFile access;
  AccessEntry admin;
  admin.name = "admin";
  admin.role = v1::ROLE_ADMIN;
  ASSERT_TRUE(AddAccess(admin, &access).ok());
  options_.access_file = options_.data_dir + ".access.json";
  ASSERT_TRUE(SaveAccessFile(options_.access_file, access).ok());
  options_.cors_origins = {"https://dash.example"};
  Start();
  for (const char* const path : {"/healthz", "/metrics", "/artifacts/a", "/"}) {
    EXPECT_EQ(Http().Get(path, {{"Host", "evil.example"}})->status, 421) << path;
  }
  EXPECT_EQ(Http().Get("/healthz", {{"Host", "127.0.0.1"}})->status, 200);
  // Behind a proxy that leaves the name as it is, which has to be told.
  EXPECT_EQ(Http().Get("/healthz", {{"Host", "dash.example"}})->status, 200);
  EXPECT_EQ(Http().Get("/healthz", {{"Host", "dash.example:444"}})->status, 421);
}

TEST_F(HttpTest, WhatIsNoMethodOfAServiceSaysSo) {
  Start();
  const auto none =
      Http().Post("/plumbline.v1.JobService/None", FrameOf(""), "application/grpc-web");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->status, 200);
  EXPECT_TRUE(absl::StrContains(none->body, "grpc-status: 12\r\n"));
  EXPECT_TRUE(absl::StrContains(none->body, "plumbline.v1.JobService has no method")) << none->body;
  // Every service of the API is there.
  for (const char* const service :
       {"JobService", "ArtifactService", "AdminService", "WorkerService", "StoreService"}) {
    EXPECT_EQ(Http()
                  .Post(absl::StrCat("/plumbline.v1.", service, "/None"), FrameOf(""),
                        "application/grpc-web")
                  ->status,
              200)
        << service;
  }
  EXPECT_EQ(Http().Post("/plumbline.v1.None/None", FrameOf(""), "application/grpc-web")->status,
            404);
}

TEST_F(HttpTest, MetricsHaveTheCountOfRefusedConnections) {
  options_.http_limits.max_connections_per_address = 2;
  options_.http_limits.limits_loopback = true;
  Start();
  httplib::Client first = Http();
  first.set_keep_alive(true);
  const auto refused = [&first] {
    const auto metrics = first.Get("/metrics");
    EXPECT_TRUE(metrics);
    constexpr char kName[] = "\nplumbline_http_refused_connections_total ";
    const std::vector<std::string> parts = absl::StrSplit(metrics ? metrics->body : "", kName);
    EXPECT_EQ(parts.size(), 2u);
    return std::string(parts.back().substr(0, parts.back().find('\n')));
  };
  EXPECT_EQ(refused(), "0");
  httplib::Client second = Http();
  second.set_keep_alive(true);
  EXPECT_EQ(second.Get("/healthz")->status, 200);
  const auto third = Http().Get("/healthz");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->status, 503);
  EXPECT_EQ(third->get_header_value("Retry-After"), "1");
  EXPECT_EQ(refused(), "1");
}

TEST_F(HttpTest, ConfiguredOriginsMayCall) {
  options_.cors_origins = {"https://dash.example"};
  Start();
  const httplib::Headers origin = {{"Origin", "https://dash.example"}};
  const auto preflight = Http().Options("/plumbline.v1.JobService/ListJobs", origin);
  ASSERT_TRUE(preflight);
  EXPECT_EQ(preflight->status, 204);
  EXPECT_EQ(preflight->get_header_value("Access-Control-Allow-Origin"), "https://dash.example");
  EXPECT_TRUE(
      absl::StrContains(preflight->get_header_value("Access-Control-Allow-Headers"), "x-grpc-web"));
  const auto call =
      Http().Post("/plumbline.v1.JobService/ListJobs", origin, FrameOf(""), "application/grpc-web");
  EXPECT_EQ(call->get_header_value("Access-Control-Allow-Origin"), "https://dash.example");
  EXPECT_EQ(Http().Get("/healthz", {{"Origin", "https://other.example"}})->status, 403);
  for (const char* bad : {"*", "dash.example", "https://dash.example/", "https://", "HTTPS://A"}) {
    CoordinatorOptions options = options_;
    options.cors_origins = {bad};
    EXPECT_TRUE(absl::IsInvalidArgument(Coordinator::Start(options).status())) << bad;
  }
}

TEST_F(HttpTest, WithoutTheDashboardItSaysHowToHaveIt) {
  Start();
  const auto page = Http().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 404);
  EXPECT_TRUE(absl::StrContains(page->body, "--web-dir=DIR")) << page->body;
  EXPECT_EQ(Http().Get("/jobs")->body, "error 404\n");
}

TEST_F(HttpTest, TheDashboardIsServedBesideTheRest) {
  options_.web_dir = absl::StrCat(testing::TempDir(), "/dashboard");
  std::filesystem::create_directories(options_.web_dir);
  std::ofstream(options_.web_dir + "/index.html") << "dashboard";
  Start();
  EXPECT_EQ(Http().Get("/")->body, "dashboard");
  EXPECT_EQ(Http().Get("/jobs/7")->body, "dashboard");
  EXPECT_EQ(Http().Get("/healthz")->body, "ok\n");
  EXPECT_EQ(Http().Get("/artifacts/none")->status, 403);
  EXPECT_EQ(Http().Head("/")->get_header_value("Content-Length"), "9");
  EXPECT_EQ(Http().Get("/%2e%2e/%2e%2e/etc/passwd.txt")->status, 404);
}

}  // namespace
}  // namespace plumbline::server
