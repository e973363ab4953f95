#include "common/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "common/raw_client.h"
#include "common/test_listener.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

httplib::Client ClientOf(const HttpServer& server) {
  return httplib::Client("127.0.0.1", server.port());
}

TEST(HttpServerTest, HandlersSeeTheRequestAndMakeTheResponse) {
  HttpServer server;
  server.Handle("POST", "/echo/*", [](const HttpRequest& request) {
    HttpResponse response;
    response.status = 201;
    response.content_type = "application/x-test";
    response.headers.push_back({"X-Header", request.headers.at("x-request")});
    response.body = absl::StrCat(request.method, " ", request.path, " ", request.rest, " ",
                                 request.query.at("q"), " ", request.body);
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
  EXPECT_EQ(result->body, std::string("POST /echo/abc/d e abc/d e 1&2 bo\0dy", 36));
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
  const auto large = client.Post("/post", std::string((6 << 20) + 1, 'x'), "text/plain");
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
  const std::string host = OwnLoopbackHost();
  HttpServer first;
  ASSERT_TRUE(first.Start(host + ":0").ok());
  const std::string address = absl::StrCat(host, ":", first.port());
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

TEST(HttpServerTest, HostileMessages) {
  HttpLimits limits;
  limits.max_bodies_bytes = 1000;
  HttpServer server(limits);
  server.Handle("POST", "/", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nonsense\r\n\r\n", "400"},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET http://other/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n", "413"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7000000\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'),
       "503"},
      {"GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(20000, 'a') + "\r\n\r\n", "431"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", "400"},
      {"GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\n\r\n", "400"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"PUT / HTTP/1.1\r\nHost: a\r\n\r\n", "405"},
  };
  for (const auto& [message, status] : cases) {
    const RawClient client(server.port());
    client.Send(message);
    EXPECT_THAT(client.ReadUntil("\r\n"), HasSubstr(" " + status + " ")) << message.substr(0, 90);
  }
}

// What cannot be told from the next request is never read as one.
TEST(HttpServerTest, AnUnknownTransferEncodingEndsTheConnection) {
  HttpServer server;
  server.Handle("GET", "/*", [](const HttpRequest&) { return HttpResponse(); });
  server.Handle("POST", "/*", [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  for (const char* const fields :
       {"Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n", "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"}) {
    for (const char* const method : {"GET", "POST", "DELETE"}) {
      const RawClient client(server.port());
      client.Send(absl::StrCat(method, " / HTTP/1.1\r\nHost: a\r\n", fields,
                               "\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
      const std::string answer = client.ReadAll();
      EXPECT_THAT(answer, ::testing::MatchesRegex("HTTP/1.1 (400|501) (.|\n)*")) << fields;
      EXPECT_EQ(answer.rfind("HTTP/1.1"), 0u) << fields << answer;
    }
  }
  const RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, HasSubstr(" 400 "));
  EXPECT_EQ(answer.rfind("HTTP/1.1"), 0u) << answer;
}

TEST(HttpServerTest, TrailersAreNoHeaders) {
  HttpServer server;
  server.Handle("POST", "/", [](const HttpRequest& request) {
    HttpResponse response;
    response.body = absl::StrCat(request.body, " ", request.headers.count("authorization"), " ",
                                 request.headers.at("host"));
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  const RawClient client(server.port());
  client.Send(
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\nHost: b\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), ::testing::EndsWith("\r\n\r\nabc 0 a"));
}

// A body that was announced and does not come keeps nobody's place.
TEST(HttpServerTest, OnlyWhatHasComeOfBodiesCounts) {
  HttpLimits limits;
  limits.max_bodies_bytes = 1000;
  HttpServer server(limits);
  server.Handle("POST", "/", [](const HttpRequest& request) {
    HttpResponse response;
    response.body = absl::StrCat(request.body.size(), " bytes");
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  std::vector<RawClient> liars;
  for (int i = 0; i < 8; ++i) {
    liars.emplace_back(server.port());
    liars.back().Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
  }
  for (int i = 0; i < 3; ++i) {
    const RawClient client(server.port());
    client.Send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 900\r\n\r\n" +
                std::string(900, 'x'));
    EXPECT_THAT(client.ReadAll(), HasSubstr("900 bytes"));
  }
  // One longer than a piece comes as it was sent.
  HttpServer large;
  large.Handle("POST", "/", [](const HttpRequest& request) {
    HttpResponse response;
    response.body = request.body;
    return response;
  });
  ASSERT_TRUE(large.Start("127.0.0.1:0").ok());
  std::string sent(300'001, 'a');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i * i % 26);
  const auto echoed = ClientOf(large).Post("/", sent, "text/plain");
  ASSERT_TRUE(echoed);
  EXPECT_EQ(echoed->body, sent);
}

// What a handler got from somebody else cannot end a line and begin another header, or the body.
TEST(HttpServerTest, NoValueOfAHeaderLeavesItsLine) {
  HttpServer server;
  server.Handle("GET", "/type", [](const HttpRequest&) {
    HttpResponse response;
    response.content_type = "text/html\r\n\r\n<script>";
    return response;
  });
  server.Handle("GET", "/header", [](const HttpRequest&) {
    HttpResponse response;
    response.headers.push_back({"X", "a\nSet-Cookie: b"});
    return response;
  });
  server.HandleStream("GET", "/stream", [](HttpRequest, std::shared_ptr<HttpStream> stream) {
    stream->Start(200, {{"X", "a\r\nSet-Cookie: b"}});
    stream->Finish();
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  for (const char* const path : {"/type", "/header", "/stream"}) {
    const RawClient client(server.port());
    client.Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    const std::string answer = client.ReadAll();
    EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie"))) << path;
    EXPECT_THAT(answer, Not(HasSubstr("script"))) << path;
    EXPECT_THAT(answer, Not(HasSubstr("200 OK"))) << path;
  }
}

TEST(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpServer server;
  server.Handle("GET", "/*", [](const HttpRequest& request) {
    HttpResponse response;
    response.body = request.rest;
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  const RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 20; ++i)
    absl::StrAppend(&requests, "GET /r", i, ". HTTP/1.1\r\nHost: a\r\n\r\n");
  client.Send(requests + "GET /end HTTP/1.0\r\n\r\n");
  const std::string all = client.ReadAll();
  size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    at = all.find(absl::StrCat("\r\n\r\nr", i, "."), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_THAT(all, ::testing::EndsWith("\r\n\r\nend"));
}

}  // namespace
}  // namespace plumbline
