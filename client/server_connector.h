#ifndef PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_
#define PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connector.h"

namespace plumbline::client {

struct ServerFlags {
  std::string server;      // HOST:PORT, or unix:PATH. Empty: no server is named.
  std::string token_file;  // Holds a bearer token. Sent with every call.
  std::string ca;          // PEM: who may sign the server's certificate. Any TLS flag turns TLS on.
  std::string cert;        // PEM of the client, with `key`: mutual TLS.
  std::string key;
};

// Reads the files of `flags` and keeps their contents; nothing is connected yet. INVALID_ARGUMENT,
// naming the flag, for a file that cannot be read, one of --cert and --key without the other, and a
// token over a connection without TLS to another machine.
absl::StatusOr<std::unique_ptr<Connector>> NewServerConnector(const ServerFlags& flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SERVER_CONNECTOR_H_
