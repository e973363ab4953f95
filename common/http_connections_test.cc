// How many connections the HTTP server keeps, of whom, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/http_server.h"
#include "common/raw_client.h"

namespace plumbline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::StartsWith;
using ::testing::Value;

Matcher<std::string> IsAnswer() { return StartsWith("HTTP/1.1 200 OK\r\n"); }

// Of a connection too many, before anything is read of it.
Matcher<std::string> IsRefusal() {
  return AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nConnection: close\r\n"),
               HasSubstr("\r\nRetry-After: 1\r\n"));
}

httplib::Client ClientOf(const HttpServer& server) {
  return httplib::Client("127.0.0.1", server.port());
}

TEST(HttpConnectionsTest, ClientsThatDawdleStarveNobody) {
  // Nobody is cut off: a server that waits for one of them never answers another.
  HttpLimits limits;
  limits.header_timeout = limits.body_timeout = limits.idle_timeout = absl::Hours(24);
  HttpServer server(limits);
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
  const auto result = client.Get("/healthz");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
}

TEST(HttpConnectionsTest, DawdlersAreCutOff) {
  // What is answered to `text`, until the one of the limits that is short ends it.
  const auto answer = [](absl::Duration HttpLimits::*limit, const std::string& text) {
    HttpLimits limits;
    limits.header_timeout = limits.body_timeout = limits.idle_timeout = absl::Hours(24);
    limits.*limit = absl::Milliseconds(50);
    HttpServer server(limits);
    server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
    server.Handle("POST", "/", [](const HttpRequest&) { return HttpResponse(); });
    EXPECT_TRUE(server.Start("127.0.0.1:0").ok());
    const RawClient client(server.port());
    client.Send(text);
    return client.ReadAll();
  };
  EXPECT_EQ(answer(&HttpLimits::header_timeout, ""), "");
  EXPECT_EQ(answer(&HttpLimits::header_timeout, "GET / HTTP/1.1\r\nHost: a\r\nA"), "");
  EXPECT_EQ(
      answer(&HttpLimits::body_timeout, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx"),
      "");
  EXPECT_THAT(answer(&HttpLimits::idle_timeout, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              HasSubstr("200 OK"));
}

TEST(HttpConnectionsTest, AboveTheLimitTheOneThatWaitedLongestGoes) {
  HttpLimits limits;
  limits.max_connections = 4;
  limits.header_timeout = absl::Hours(24);
  HttpServer server(limits);
  server.Handle("GET", "/", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<RawClient> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(server.port());
  const RawClient newest(server.port());
  newest.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(newest.ReadAll(), IsAnswer());
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
        EXPECT_THAT(held.back().ReadUntil("\r\n"), IsAnswer());
      }
      EXPECT_THAT(get(), limits_loopback ? IsRefusal() : IsAnswer());
      EXPECT_EQ(server.refused_connections(), limits_loopback ? 1 : 0);
    }
    // What has been left counts no more.
    std::string answer;
    for (int i = 0; i < 3000 && !Value(answer, IsAnswer()); ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      answer = get();
    }
    EXPECT_THAT(answer, IsAnswer());
  }
}

// Somebody is being answered, and is no slower than others are.
TEST(HttpConnectionsTest, AboveTheLimitTheNewOneIsRefusedWhereNoneCanGo) {
  HttpLimits limits;
  limits.max_connections = 1;
  HttpServer server(limits);
  server.HandleStream("GET", "/",
                      [](const HttpRequest&, const std::shared_ptr<HttpStream>& stream) {
                        stream->Start(200, {});
                        // Held for as long as its client is there.
                        stream->OnceLeft([stream] {});
                      });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  const RawClient held(server.port());
  held.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(held.ReadUntil("\r\n"), IsAnswer());
  EXPECT_THAT(RawClient(server.port()).ReadAll(), IsRefusal());
  // It is not one of those that have too many.
  EXPECT_EQ(server.refused_connections(), 0);
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
    EXPECT_THAT(clients.back().ReadUntil("\r\n"), IsAnswer());
  }
  // It may come before the others count as stuck.
  std::string answer;
  for (int i = 0; i < 600 && !Value(answer, IsAnswer()); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const RawClient newest(server.port());
    newest.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    answer = newest.ReadAll();
  }
  EXPECT_THAT(answer, IsAnswer());
}

}  // namespace
}  // namespace plumbline
