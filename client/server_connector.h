#ifndef PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_
#define PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connector.h"
#include "common/access/client_channel.h"

namespace plumbline::client {

struct ServerFlags {
  std::string server;  // HOST:PORT, or unix:PATH. Empty: no server is named.
  ClientFiles files;
};

// Checks the files of `flags`; nothing is connected yet. Errors as of ClientChannels::Load.
absl::StatusOr<std::unique_ptr<Connector>> NewServerConnector(const ServerFlags& flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_
