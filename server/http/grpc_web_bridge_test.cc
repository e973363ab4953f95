#include "server/http/grpc_web_bridge.h"

#include <arpa/inet.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plumbline::server {
namespace {

constexpr size_t kMessageBytes = 64 << 10;

// Streams messages as fast as they are taken, for ever.
class Endless final : public grpc::CallbackGenericService {
 public:
  std::atomic<int> written{0};
  std::atomic<int> open{0};

 private:
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(Endless* service) : service_(service) {
      const grpc::Slice slice(std::string(kMessageBytes, 'x'));
      message_ = grpc::ByteBuffer(&slice, 1);
      ++service_->open;
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

TEST(GrpcWebBridgeTest, AReaderThatStopsHoldsLittleAndOneThatLeavesNothing) {
  Endless endless;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&endless);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  GrpcWebBridge bridge;
  HttpServer http;
  bridge.Connect(server.get(), [](const std::string&) { return ""; });
  bridge.AddService("test.Service", &http);
  ASSERT_TRUE(http.Start("127.0.0.1:0").ok());

  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(http.port()));
  ASSERT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = absl::StrCat(
      "POST /test.Service/Stream HTTP/1.1\r\nContent-Type: application/grpc-web\r\n"
      "Content-Length: 5\r\n\r\n",
      std::string(5, '\0'));
  ASSERT_EQ(send(socket, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  char buffer[16];
  ASSERT_EQ(recv(socket, buffer, sizeof(buffer), MSG_WAITALL), 16);
  EXPECT_TRUE(absl::StartsWith(std::string(buffer, 16), "HTTP/1.1 200 OK"));
  // It reads no more. When what the sockets hold is full, the service waits.
  int last = -1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (last != endless.written && std::chrono::steady_clock::now() < end) {
    last = endless.written;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_EQ(last, endless.written);
  EXPECT_LT(endless.written * kMessageBytes, size_t{32} << 20);
  close(socket);
  while (endless.open > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(endless.open, 0);
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
  http.Stop();
}

}  // namespace
}  // namespace plumbline::server
