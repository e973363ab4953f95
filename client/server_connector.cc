#include "client/server_connector.h"

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/access/client_channel.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

class ServerConnector : public Connector {
 public:
  ServerConnector(std::string server, ClientChannels channels)
      : server_(std::move(server)), channels_(std::move(channels)) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() override {
    grpc::ChannelArguments arguments;
    // A coordinator that vanished with its machine is noticed within half a minute.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
    // Another channel of this process must not hand us its broken connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return channels_.Connect(arguments);
  }

  absl::Status WhyNotConnected() const override { return channels_.WhyNotConnected(); }
  bool is_embedded() const override { return false; }
  std::string Description() const override { return absl::StrCat("the server at ", server_); }

 private:
  const std::string server_;
  const ClientChannels channels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connector>> NewServerConnector(const ServerFlags& flags) {
  PLUMBLINE_ASSIGN_OR_RETURN(ClientChannels channels,
                             ClientChannels::Load(flags.server, flags.files));
  return std::make_unique<ServerConnector>(flags.server, std::move(channels));
}

}  // namespace plumbline::client
