#ifndef PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_
#define PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_

#include <google/protobuf/descriptor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/http_server.h"
#include "server/http/local_channel.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace plumbline::server {

// Speaks gRPC-Web on the HTTP port: POST /PACKAGE.SERVICE/METHOD becomes a call of that method over
// a channel to the gRPC server of this process, whatever the method does; what comes back goes to
// the client message by message, the next one read when the system has taken the one before. So a
// slow client costs one message, and one that leaves ends its call.
class GrpcWebBridge {
 public:
  // Adds a handler for the methods of `service`, e.g. of plumbline.v1.JobService; others below its
  // path are UNIMPLEMENTED here. The bridge must outlive the server.
  void AddService(const google::protobuf::ServiceDescriptor* service, HttpServer* server);

  // Before the first request can come.
  // `certificate_metadata`: the value of Gatekeeper::kCertificateMetadata for a common name.
  void Connect(grpc::Server* server,
               std::function<std::string(const std::string&)> certificate_metadata) {
    channel_ = std::make_unique<LocalChannel>(server);
    certificate_metadata_ = std::move(certificate_metadata);
  }
  // Before the gRPC server shuts down: calls from now on are UNAVAILABLE.
  void Close() {
    if (channel_ != nullptr) channel_->Close();
  }

 private:
  void Handle(const google::protobuf::ServiceDescriptor& service, HttpRequest request,
              std::shared_ptr<HttpStream> stream) const;

  std::unique_ptr<LocalChannel> channel_;
  std::function<std::string(const std::string&)> certificate_metadata_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_GRPC_WEB_BRIDGE_H_
