#ifndef PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_
#define PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_

#include <memory>
#include <string>

#include "common/http_server.h"
#include "server/http/local_channel.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace plumbline::server {

// Speaks gRPC-Web on the HTTP port: POST /PACKAGE.SERVICE/METHOD becomes a call of that method over
// a channel to the gRPC server of this process, whatever the method is; what comes back goes to the
// client message by message, the next one read when the system has taken the one before. So a slow
// client costs one message, and one that leaves ends its call.
class GrpcWebBridge {
 public:
  // Adds a handler for the methods of `service`, e.g. "plumbline.v1.JobService". The bridge must
  // outlive the server.
  void AddService(const std::string& service, HttpServer* server);

  // Before the first request can come.
  void Connect(grpc::Server* server) { channel_ = std::make_unique<LocalChannel>(server); }

 private:
  void Handle(HttpRequest request, std::shared_ptr<HttpStream> stream) const;

  std::unique_ptr<LocalChannel> channel_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_
