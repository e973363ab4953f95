// How the HTTP server sends files, and streams, to readers fast and slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/http_server.h"
#include "common/raw_client.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

TEST(HttpAnswersTest, FilesAreSentWholeInPartOrNotAtAll) {
  HttpServer server;
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 251));
  server.Handle("GET", "/file", [&bytes](const HttpRequest&) {
    HttpResponse response;
    response.content_type = "video/mp4";
    response.file =
        HttpFile{static_cast<int64_t>(bytes.size()), "tag",
                 [&bytes](int64_t offset, int64_t length) -> absl::StatusOr<std::string> {
                   return bytes.substr(offset, length);
                 }};
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  httplib::Client client("127.0.0.1", server.port());
  const auto whole = client.Get("/file");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->status, 200);
  EXPECT_EQ(whole->body, bytes);
  EXPECT_EQ(whole->get_header_value("Accept-Ranges"), "bytes");
  const auto part = client.Get("/file", {{"Range", "bytes=100000-299998"}});
  EXPECT_EQ(part->status, 206);
  EXPECT_EQ(part->body, bytes.substr(100000, 199999));
  EXPECT_EQ(part->get_header_value("Content-Range"), "bytes 100000-299998/300000");
  const auto beyond = client.Get("/file", {{"Range", "bytes=300000-"}});
  EXPECT_EQ(beyond->status, 416);
  EXPECT_EQ(beyond->get_header_value("Content-Range"), "bytes */300000");
  EXPECT_EQ(client.Get("/file", {{"If-None-Match", "\"tag\""}})->status, 304);
  EXPECT_EQ(client.Get("/file", {{"Range", "bytes=1-2"}, {"If-Range", "\"tag\""}})->status, 206);
  EXPECT_EQ(client.Get("/file", {{"Range", "bytes=1-2"}, {"If-Range", "\"old\""}})->status, 200);
  const auto head = client.Head("/file");
  EXPECT_EQ(head->get_header_value("Content-Length"), "300000");
  EXPECT_EQ(head->body, "");
}

TEST(HttpAnswersTest, AStreamGoesNoFasterThanItsReaderAndEndsWithIt) {
  HttpServer server;
  absl::Mutex mutex;
  std::shared_ptr<HttpStream> stream;
  server.HandleStream("GET", "/stream",
                      [&](const HttpRequest&, std::shared_ptr<HttpStream> new_stream) {
                        absl::MutexLock lock(&mutex);
                        stream = std::move(new_stream);
                      });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  auto client = std::make_unique<RawClient>(server.port());
  client->Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(
        +[](std::shared_ptr<HttpStream>* s) { return *s != nullptr; }, &stream));
  }
  stream->Start(200, {{"X-A", "b"}});
  EXPECT_THAT(client->ReadUntil("\r\n\r\n"), HasSubstr("X-A: b"));
  absl::Notification small;
  stream->Write("abc", [&small](bool taken) {
    EXPECT_TRUE(taken);
    small.Notify();
  });
  small.WaitForNotification();
  EXPECT_EQ(client->ReadUntil("abc\r\n"), "3\r\nabc\r\n");

  absl::Notification left;
  stream->OnceLeft([&left] { left.Notify(); });
  // Far more than sockets hold.
  absl::Notification large;
  bool taken = true;
  stream->Write(std::string(64 << 20, 'x'), [&](bool ok) {
    taken = ok;
    large.Notify();
  });
  EXPECT_EQ(client->ReadUntil("x"), "10000\r\nx");
  EXPECT_FALSE(large.HasBeenNotified());
  client.reset();
  large.WaitForNotification();
  EXPECT_FALSE(taken);
  left.WaitForNotification();
  // Once it has left, nothing is taken, and whoever asks is told at once.
  absl::Notification late;
  stream->OnceLeft([&late] { late.Notify(); });
  late.WaitForNotification();
  stream->Finish();
  stream.reset();
}

TEST(HttpAnswersTest, AReaderThatStopsIsCutOff) {
  constexpr int64_t kSize = 64 << 20;
  HttpLimits limits;
  limits.write_timeout = absl::Milliseconds(100);
  HttpServer server(limits);
  // Gone once the server has given the answer up.
  absl::Notification given_up;
  server.Handle("GET", "/", [&given_up](const HttpRequest&) {
    const std::shared_ptr<void> answer(nullptr, [&given_up](void*) { given_up.Notify(); });
    HttpFile file;
    file.size_bytes = kSize;
    file.read = [answer](int64_t, int64_t length) -> absl::StatusOr<std::string> {
      return std::string(static_cast<size_t>(length), 'x');
    };
    HttpResponse response;
    response.file = std::move(file);
    return response;
  });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  const RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  client.ReadUntil("\r\n\r\n");
  ASSERT_TRUE(given_up.WaitForNotificationWithTimeout(absl::Minutes(1)));
  // What is read from now on is what the sockets held then.
  EXPECT_LT(client.ReadAll().size(), static_cast<size_t>(kSize));
}

}  // namespace
}  // namespace plumbline
