// plumbline-server: the coordinator.
#include <signal.h>

#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "server/coordinator.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  std::string listen = "127.0.0.1:7433";
  std::string http = "127.0.0.1:7434";
  std::string data_dir;
  std::string ready_file;
  std::string log_format = "text";
  std::string lease_duration = "15s";
};

absl::Status Run(const Flags& flags, const sigset_t& signals) {
  LogOptions logging;
  PLUMBLINE_ASSIGN_OR_RETURN(logging.format, ParseLogFormat(flags.log_format));
  ConfigureLogging(logging);

  CoordinatorOptions options;
  options.listen = {flags.listen};
  options.http = flags.http;
  options.data_dir = flags.data_dir;
  SchedulerOptions& scheduler = options.scheduler;
  if (!absl::ParseDuration(flags.lease_duration, &scheduler.lease_duration) ||
      scheduler.lease_duration < absl::Seconds(1) || scheduler.lease_duration > absl::Hours(1)) {
    return FieldError("lease-duration",
                      absl::StrCat(Quoted(flags.lease_duration), " is not possible"), "1s to 1h");
  }
  // Several heartbeats may be lost before a lease is.
  scheduler.heartbeat_interval = scheduler.lease_duration / 5;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                             Coordinator::Start(std::move(options)));
  Log(LogLevel::kInfo, "serving",
      {{"listen", coordinator->addresses()[0]}, {"http", coordinator->http_address()}});
  if (!flags.ready_file.empty()) {
    const nlohmann::json ready = {{"listen", coordinator->addresses()[0]},
                                  {"http", coordinator->http_address()}};
    PLUMBLINE_RETURN_IF_ERROR(
        WriteFileAtomically(flags.ready_file, absl::StrCat(ready.dump(), "\n")));
  }
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "shutting down", {{"signal", signal}});
  coordinator->Shutdown(kShutdownGrace);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "The coordinator of Plumbline: takes jobs, gives their tasks to workers, and keeps "
      "what comes of them.",
      "plumbline-server");
  app.add_option("--listen", flags.listen,
                 "Serve gRPC at HOST:PORT (port 0: a free one) or unix:PATH")
      ->capture_default_str();
  app.add_option("--http", flags.http,
                 "Serve /metrics, /healthz, /readyz and artifacts at HOST:PORT")
      ->capture_default_str();
  app.add_option("--data-dir", flags.data_dir, "Keep jobs and files in this folder")->required();
  app.add_option("--ready-file", flags.ready_file,
                 "Write the addresses to this file, as JSON, once they are served");
  app.add_option("--log-format", flags.log_format, "text or json")->capture_default_str();
  app.add_option("--lease-duration", flags.lease_duration,
                 "A worker that is not heard of for so long loses its tasks, e.g. 15s")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  // Every thread inherits this, so that the one that waits for them gets the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  const absl::Status status = Run(flags, signals);
  if (status.ok()) return 0;
  std::fprintf(stderr, "plumbline-server: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 3;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
