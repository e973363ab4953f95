#ifndef PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_CONNECTOR_H_
#define PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_CONNECTOR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connector.h"

namespace plumbline::client {

struct EmbeddedOptions {
  std::string state_path;       // As StatePathFromEnvironment says.
  bool needs_worker = false;    // Should this process become the coordinator, it also works.
  std::string device = "auto";  // What it then works on, as DeviceOptions says.
};

// Finds the coordinator of the state folder, or becomes it: the process that holds the folder's
// lock is the coordinator and listens on the folder's socket; the others are its clients. When it
// ends, one of them takes its place, and with it the jobs; so the connection of an embedded client
// may be lost at any time, and Connect makes the next one. Destroying the connector ends what this
// process runs, handing tasks back.
absl::StatusOr<std::unique_ptr<Connector>> NewEmbeddedConnector(const EmbeddedOptions& options);

// main() begins with it: the exit status of a process that an embedded worker started to probe a
// plug-in in; nothing in any other.
std::optional<int> RunEmbeddedProbe(int argc, const char* const* argv);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_EMBEDDED_EMBEDDED_CONNECTOR_H_
