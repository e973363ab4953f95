#include "client/client_main.h"

#include <cstdlib>
#include <optional>

#include "client/commands.h"
#include "client/embedded/embedded_connector.h"
#include "client/embedded/state_folder.h"
#include "client/environment.h"
#include "client/interrupt.h"
#include "common/clock.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

absl::StatusOr<std::unique_ptr<Connector>> Embedded(bool needs_worker) {
  EmbeddedOptions options;
  PLUMBLINE_ASSIGN_OR_RETURN(options.state_path, StatePathFromEnvironment());
  options.needs_worker = needs_worker;
  if (const char* device = std::getenv("PLUMBLINE_DEVICE"); device != nullptr && *device != 0) {
    options.device = device;
  }
  return NewEmbeddedConnector(options);
}

}  // namespace

int ClientMain(int argc, char** argv) {
  if (const std::optional<int> probed = RunEmbeddedProbe(argc, argv)) return *probed;
  // gRPC would write about lost connections, which we do ourselves.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  Interrupt interrupt;
  const SignalWatch signals(&interrupt);
  Environment environment;
  environment.output = ProcessOutput();
  environment.clock = SystemClock();
  environment.interrupt = &interrupt;
  environment.embedded = &Embedded;
  return RunCommandLine(argc, argv, environment);
}

}  // namespace plumbline::client
