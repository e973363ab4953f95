#include "common/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "common/diagnostic_handlers.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

httplib::Client ClientOf(const HttpServer& server) {
  return httplib::Client("127.0.0.1", server.port());
}

TEST(HttpServerTest, HandlersSeeTheRequestAndMakeTheResponse) {
  HttpServer server;
  server.Handle("POST", "/echo/([a-z]+)/(.*)", [](const HttpRequest& request) {
    HttpResponse response;
    response.status = 201;
    response.content_type = "application/x-test";
    response.headers.push_back({"X-Header", request.headers.at("x-request")});
    response.body =
        absl::StrCat(request.method, " ", request.path, " ", request.captures.at(0), " ",
                     request.captures.at(1), " ", request.query.at("q"), " ", request.body);
    return response;
  });
  EXPECT_EQ(server.port(), 0);
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  EXPECT_GT(server.port(), 0);
  httplib::Client client = ClientOf(server);
  const auto result = client.Post("/echo/abc/d%20e?q=1%262", httplib::Headers{{"X-Request", "v"}},
                                  std::string("bo\0dy", 5), "text/plain");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 201);
  EXPECT_EQ(result->get_header_value("Content-Type"), "application/x-test");
  EXPECT_EQ(result->get_header_value("X-Header"), "v");
  EXPECT_EQ(result->body, std::string("POST /echo/abc/d e abc d e 1&2 bo\0dy", 36));
}

TEST(HttpServerTest, ErrorsAreShortAndTellNothing) {
  HttpServer server;
  server.Handle("GET", "/throw",
                [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret"); });
  server.Handle("POST", "/post", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  httplib::Client client = ClientOf(server);
  const auto missing = client.Get("/none");
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(missing->body, "error 404\n");
  const auto thrown = client.Get("/throw");
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->status, 500);
  EXPECT_EQ(thrown->body, "error 500\n");
  for (const auto& [name, value] : thrown->headers) EXPECT_NE(value, "secret") << name;
  const auto large = client.Post("/post", std::string((4 << 20) + 1, 'x'), "text/plain");
  // Or the connection was closed while the body was being sent.
  EXPECT_TRUE(!large || large->status == 413);
}

TEST(HttpServerTest, ServesSeveralRequestsAtOnce) {
  HttpServer server;
  absl::Barrier together(4);
  server.Handle("GET", "/", [&together](const HttpRequest&) {
    together.Block();  // Returns only once four handlers run at the same time.
    return HttpResponse();
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&server] {
      httplib::Client client = ClientOf(server);
      const auto result = client.Get("/");
      ASSERT_TRUE(result);
      EXPECT_EQ(result->status, 200);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServerTest, RefusesAddressesThatAreNone) {
  for (const char* address : {"", "localhost", ":80", "localhost:", "localhost:x", "localhost:-1",
                              "localhost:65536", "::1:80", "[::1:80", "localhost:+1"}) {
    HttpServer server;
    const absl::Status status = server.Start(address);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(status.message(), HasSubstr("accepted: HOST:PORT")) << address;
  }
}

TEST(HttpServerTest, TwoServersDoNotShareAPort) {
  HttpServer first;
  ASSERT_TRUE(first.Start("127.0.0.1:0").ok());
  const std::string address = absl::StrCat("127.0.0.1:", first.port());
  HttpServer second;
  EXPECT_EQ(second.Start(address).code(), absl::StatusCode::kUnavailable);
  first.Stop();
  HttpServer third;
  EXPECT_TRUE(third.Start(address).ok());
}

TEST(HttpServerTest, StopEndsServingAndMayBeRepeated) {
  HttpServer server;
  server.Stop();
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  server.Stop();
  server.Stop();
  httplib::Client client = ClientOf(server);
  EXPECT_FALSE(client.Get("/"));
}

TEST(DiagnosticHandlersTest, MetricsHealthAndReadiness) {
  Metrics metrics;
  prometheus::BuildGauge()
      .Name("plumbline_queue_depth")
      .Register(metrics.registry())
      .Add({})
      .Set(4);
  absl::Mutex mutex;
  absl::Status ready = absl::UnavailableError("the store is opening");
  HttpServer server;
  AddDiagnosticHandlers(
      &metrics,
      [&] {
        absl::MutexLock lock(&mutex);
        return ready;
      },
      &server);
  ASSERT_TRUE(server.Start("localhost:0").ok());
  httplib::Client client("localhost", server.port());
  const auto text = client.Get("/metrics");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(text->body, HasSubstr("plumbline_queue_depth 4\n"));
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto opening = client.Get("/readyz");
  ASSERT_TRUE(opening);
  EXPECT_EQ(opening->status, 503);
  EXPECT_EQ(opening->body, "not ready: the store is opening\n");
  {
    absl::MutexLock lock(&mutex);
    ready = absl::OkStatus();
  }
  EXPECT_EQ(client.Get("/readyz")->status, 200);
}

}  // namespace
}  // namespace plumbline
