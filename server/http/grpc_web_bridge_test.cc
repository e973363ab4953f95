#include "server/http/grpc_web_bridge.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/raw_client.h"

namespace plumbline::server {
namespace {

constexpr size_t kMessageBytes = 64 << 10;

// Streams messages as fast as they are taken, for ever.
class Endless final : public grpc::CallbackGenericService {
 public:
  std::atomic<int> written{0};
  std::atomic<int> begun{0};
  std::atomic<int> open{0};

 private:
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(Endless* service) : service_(service) {
      const grpc::Slice slice(std::string(kMessageBytes, 'x'));
      message_ = grpc::ByteBuffer(&slice, 1);
      ++service_->open;
      ++service_->begun;
      StartWrite(&message_);
    }
    void OnWriteDone(bool ok) override {
      if (!ok) {
        Finish(grpc::Status::CANCELLED);
        return;
      }
      ++service_->written;
      StartWrite(&message_);
    }
    void OnDone() override {
      --service_->open;
      delete this;
    }

   private:
    Endless* const service_;
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Stream(this);
  }
};

class GrpcWebBridgeTest : public testing::Test {
 protected:
  ~GrpcWebBridgeTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    http_->Stop();
  }

  void Start(HttpLimits limits) {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&endless_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    http_ = std::make_unique<HttpServer>(limits);
    bridge_.Connect(server_.get(), [](const std::string&) { return ""; });
    google::protobuf::FileDescriptorProto file;
    file.set_name("test.proto");
    file.set_package("test");
    file.add_message_type()->set_name("Nothing");
    auto* const service = file.add_service();
    service->set_name("Service");
    auto* const method = service->add_method();
    method->set_name("Stream");
    method->set_input_type(".test.Nothing");
    method->set_output_type(".test.Nothing");
    method->set_server_streaming(true);
    ASSERT_NE(descriptors_.BuildFile(file), nullptr);
    bridge_.AddService(descriptors_.FindServiceByName("test.Service"), http_.get());
    ASSERT_TRUE(http_->Start("127.0.0.1:0").ok());
  }

  // Asks for the stream, reads the beginning of the answer and no more.
  RawClient BeginToRead() const {
    RawClient client = Ask("Stream", "");
    EXPECT_EQ(client.Read(15), "HTTP/1.1 200 OK");
    return client;
  }

  // Calls `method`, with more `headers`.
  RawClient Ask(const std::string& method, const std::string& headers) const {
    RawClient client(http_->port());
    client.Send(
        absl::StrCat("POST /test.Service/", method,
                     " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/grpc-web\r\n",
                     headers, "Content-Length: 5\r\n\r\n", std::string(5, '\0')));
    return client;
  }

  // Until the service's stream has ended.
  void AwaitEnd() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (endless_.open > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(endless_.open, 0);
  }

  google::protobuf::DescriptorPool descriptors_;
  Endless endless_;
  std::unique_ptr<grpc::Server> server_;
  GrpcWebBridge bridge_;
  std::unique_ptr<HttpServer> http_;
};

TEST_F(GrpcWebBridgeTest, AReaderThatStopsHoldsLittleUntilItIsCutOff) {
  HttpLimits limits;
  limits.write_timeout = absl::Milliseconds(200);
  Start(limits);
  const RawClient client = BeginToRead();
  AwaitEnd();
  // No more than the sockets and the windows between the two hold.
  EXPECT_LT(endless_.written * kMessageBytes, size_t{32} << 20);
}

TEST_F(GrpcWebBridgeTest, AReaderThatLeavesEndsTheCall) {
  HttpLimits limits;
  limits.write_timeout = absl::Hours(1);
  Start(limits);
  { const RawClient client = BeginToRead(); }
  AwaitEnd();
}

// All callers share one channel, which more metadata than gRPC takes would break for all of them.
TEST_F(GrpcWebBridgeTest, TooMuchMetadataIsRefusedForItsCallerAlone) {
  HttpLimits limits;
  limits.write_timeout = absl::Hours(1);
  Start(limits);
  auto other = std::make_unique<RawClient>(BeginToRead());
  EXPECT_EQ(endless_.begun, 1);
  for (const size_t size : {4096, 8000, 12000}) {
    const std::string much(size, 'a');
    const std::string answer =
        Ask("Stream", absl::StrCat("Connection: close\r\nAuthorization: ", much, "\r\n"))
            .Read(kMessageBytes);
    EXPECT_TRUE(absl::StrContains(answer, "grpc-status: 3\r\n")) << size;
    EXPECT_TRUE(absl::StrContains(answer, "at most 4096 bytes")) << size;
  }
  EXPECT_EQ(endless_.begun, 1);
  EXPECT_EQ(endless_.open, 1);
  // A long token that is allowed is a call, and the other caller's goes on.
  auto allowed = std::make_unique<RawClient>(
      Ask("Stream", absl::StrCat("Authorization: ", std::string(3900, 'a'), "\r\n")));
  constexpr size_t kPieceBytes = 1 << 20;
  for (const RawClient* const client : {allowed.get(), other.get()}) {
    EXPECT_EQ(client->Read(kPieceBytes).size(), kPieceBytes);
  }
  EXPECT_EQ(endless_.begun, 2);
  allowed.reset();
  other.reset();
  AwaitEnd();
}

// The server that it would reach answers whatever it is asked.
TEST_F(GrpcWebBridgeTest, WhatIsNoMethodReachesNoServer) {
  Start({});
  for (const std::string& method :
       {std::string("None"), std::string("stream"), std::string("Stream/"), std::string("Stream2"),
        std::string(), std::string("%e2%80%ae"), std::string(9000, 'a')}) {
    const std::string answer = Ask(method, "Connection: close\r\n").Read(kMessageBytes);
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << method;
    EXPECT_TRUE(absl::StrContains(answer, "grpc-status: 12\r\n")) << method;
    EXPECT_TRUE(absl::StrContains(answer, "test.Service has no method ")) << answer;
  }
  EXPECT_EQ(endless_.begun, 0);
}

}  // namespace
}  // namespace plumbline::server
