#include "common/health_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/listening.h"
#include "common/status.h"

namespace plumbline {

class HealthServer::Impl {
 public:
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(const std::string& address,
                                                                  absl::string_view field) {
  PLUMBLINE_RETURN_IF_ERROR(CheckCanListen(address, field));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto impl = std::make_unique<Impl>();
  grpc::ServerBuilder builder;
  // Two daemons must not share a port unnoticed.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &impl->port);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  }
  std::unique_ptr<HealthServer> health(new HealthServer(std::move(impl)));
  health->impl_->server->GetHealthCheckService()->SetServingStatus("liveness", true);
  health->SetReady(false);
  return health;
}

HealthServer::~HealthServer() { impl_->server->Shutdown(); }

int HealthServer::port() const { return impl_->port; }

void HealthServer::SetReady(bool ready) {
  impl_->server->GetHealthCheckService()->SetServingStatus("readiness", ready);
}

}  // namespace plumbline
