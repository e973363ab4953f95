#include "client/embedded/embedded_connector.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <optional>
#include <utility>

#include "client/embedded/embedded_service.h"
#include "client/embedded/state_folder.h"
#include "common/status.h"
#include "worker/plugin/probe.h"

namespace plumbline::client {
namespace {

class EmbeddedConnector : public Connector {
 public:
  EmbeddedConnector(std::unique_ptr<StateFolder> folder, EmbeddedOptions options)
      : folder_(std::move(folder)), options_(std::move(options)) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() override {
    if (service_ == nullptr) {
      PLUMBLINE_ASSIGN_OR_RETURN(const bool is_mine, folder_->TryLock());
      if (is_mine) {
        PLUMBLINE_ASSIGN_OR_RETURN(service_, EmbeddedService::Start(*folder_, WorkerDevice()));
      }
    }
    grpc::ChannelArguments arguments;
    // The socket is known under one name to the coordinators that follow one another on it.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    return grpc::CreateCustomChannel(folder_->socket_address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  bool is_embedded() const override { return true; }
  std::string Description() const override { return "the coordinator of another command"; }

 private:
  // Of the worker; none where no worker is needed.
  std::optional<std::string> WorkerDevice() const {
    if (!options_.needs_worker) return std::nullopt;
    return options_.device;
  }

  const std::unique_ptr<StateFolder> folder_;
  const EmbeddedOptions options_;
  std::unique_ptr<EmbeddedService> service_;  // Ends before the folder's lock is given back.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connector>> NewEmbeddedConnector(const EmbeddedOptions& options) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<StateFolder> folder,
                             StateFolder::Open(options.state_path));
  return std::make_unique<EmbeddedConnector>(std::move(folder), options);
}

std::optional<int> RunEmbeddedProbe(int argc, const char* const* argv) {
  return worker::RunProbe(argc, argv);
}

}  // namespace plumbline::client
