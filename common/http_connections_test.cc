// How many connections the HTTP server keeps, of whom, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "common/http_server.h"
#include "common/raw_client.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

httplib::Client ClientOf(const HttpServer& server) {
  return httplib::Client("127.0.0.1", server.port());
}

TEST(HttpConnectionsTest, ClientsThatDawdleStarveNobody) {
  HttpServer server;
  server.Handle("GET", "/healthz", [](const HttpRequest&) { return HttpResponse(); });
  server.Handle("POST", "/post", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<RawClient> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(server.port());
    if (i % 3 == 1) slow.back().Send("GET /healthz HT");
    if (i % 3 == 2)
      slow.back().Send("POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx");
  }
  httplib::Client client = ClientOf(server);
  const auto start = std::chrono::steady_clock::now();
  const auto result = client.Get("/healthz");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  // All the slow ones together have not cost a wait.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

TEST(HttpConnectionsTest, DawdlersAreCutOff) {
  HttpLimits limits;
  limits.header_timeout = absl::Milliseconds(50);
  limits.body_timeout = absl::Milliseconds(50);
  limits.idle_timeout = absl::Milliseconds(50);
  HttpServer server(limits);
  server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
  server.Handle("POST", "/", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  EXPECT_EQ(RawClient(server.port()).ReadAll(), "");
  const RawClient header(server.port());
  header.Send("GET / HTTP/1.1\r\nHost: a\r\nA");
  EXPECT_EQ(header.ReadAll(), "");
  const RawClient body(server.port());
  body.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
  EXPECT_EQ(body.ReadAll(), "");
  const RawClient idle(server.port());
  idle.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(idle.ReadAll(), HasSubstr("200 OK"));
}

TEST(HttpConnectionsTest, AboveTheLimitTheOneThatWaitedLongestGoes) {
  HttpLimits limits;
  limits.max_connections = 4;
  HttpServer server(limits);
  server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<RawClient> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(server.port());
  const RawClient newest(server.port());
  newest.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(newest.ReadAll(), HasSubstr("200 OK"));
  EXPECT_EQ(clients[0].ReadAll(), "");
}

TEST(HttpConnectionsTest, OneAddressHasItsShareOfConnections) {
  HttpLimits limits;
  limits.max_connections_per_address = 3;
  for (const bool limits_loopback : {true, false}) {
    limits.limits_loopback = limits_loopback;
    HttpServer server(limits);
    server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
    ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
    const auto get = [&server] {
      const RawClient client(server.port());
      client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      return client.ReadAll();
    };
    {
      std::vector<RawClient> held;
      for (int i = 0; i < 3; ++i) {
        held.emplace_back(server.port());
        held.back().Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_THAT(held.back().ReadUntil("\r\n"), HasSubstr("200 OK"));
      }
      EXPECT_EQ(get().empty(), limits_loopback);
      EXPECT_EQ(server.refused_connections(), limits_loopback ? 1 : 0);
    }
    // What has been left counts no more.
    std::string answer;
    for (int i = 0; i < 3000 && answer.empty(); ++i) {
      answer = get();
      if (answer.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(answer, HasSubstr("200 OK"));
  }
}

// Who asks for much and reads nothing makes room when it is needed.
TEST(HttpConnectionsTest, AboveTheLimitOneWhoIsStuckGoesWhereNoneWaits) {
  HttpLimits limits;
  limits.max_connections = 4;
  limits.stuck_time = absl::Milliseconds(50);
  HttpServer server(limits);
  server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
  server.Handle("GET", "/much", [](const HttpRequest&) {
    HttpResponse response;
    response.body = std::string(64 << 20, 'x');
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server.port());
    clients.back().Send("GET /much HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(clients.back().ReadUntil("\r\n"), HasSubstr("200 OK"));
  }
  // It may come before the others count as stuck.
  std::string answer;
  for (int i = 0; i < 600 && answer.empty(); ++i) {
    const RawClient newest(server.port());
    newest.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    answer = newest.ReadAll();
    if (answer.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

}  // namespace
}  // namespace plumbline
