#include "server/server_main.h"

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/chosen_name.h"
#include "common/command_errors.h"
#include "common/command_reference.h"
#include "common/files.h"
#include "common/grpc_log.h"
#include "common/http_server.h"
#include "common/logging.h"
#include "common/output_path.h"
#include "common/service_manager.h"
#include "common/status.h"
#include "common/version.h"
#include "nlohmann/json.hpp"
#include "server/coordinator.h"
#include "server/store/backups.h"
#include "server/store/store_check.h"

namespace plumbline::server {
namespace {

// Of the labels of jobs.
constexpr size_t kMaxLabelBytes = 63;
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  std::string listen = "127.0.0.1:7433";
  std::string http = "127.0.0.1:7434";
  std::string health;
  std::string web_dir;
  std::vector<std::string> cors_origins;
  TlsFiles tls;
  std::string access_file;
  PrincipalLimits limits;
  int http_connections = HttpLimits().max_connections_per_address;
  std::string data_dir;
  std::string ready_file;
  std::string log_format = "text";
  std::string lease_duration = "15s";
  std::string backup_dir;
  int64_t step_budget_bytes = 0;
  bool takes_plugin_uploads = false;
  std::string fair_share_label = "team";
  std::vector<std::string> quotas;
  std::string keep_jobs = "inf";
  std::string keep_events = "720h";
  std::optional<int64_t> restore;
  bool check = false;
};

absl::Status ParseKeep(absl::string_view flag, const std::string& text, absl::Duration* keep) {
  if (absl::ParseDuration(text, keep) && *keep >= absl::ZeroDuration()) return absl::OkStatus();
  return FieldError(flag, absl::StrCat(Quoted(text), " is no duration"), "e.g. 720h, or inf");
}

// Prints what it finds. An error where there is any.
absl::Status Check(const std::string& data_dir) {
  PLUMBLINE_ASSIGN_OR_RETURN(const StoreCheck::Result result, StoreCheck::Run(data_dir));
  for (const std::string& problem : result.problems) std::printf("%s\n", problem.c_str());
  std::printf(
      "%lld jobs, %lld tasks, %lld events, %lld runs, %lld steps, %lld blobs, %lld artifacts, "
      "%lld bytes of blobs and artifacts: %lld problems\n",
      static_cast<long long>(result.jobs), static_cast<long long>(result.tasks),
      static_cast<long long>(result.events), static_cast<long long>(result.runs),
      static_cast<long long>(result.steps), static_cast<long long>(result.blobs),
      static_cast<long long>(result.artifacts), static_cast<long long>(result.bytes),
      static_cast<long long>(result.problem_count));
  return result.problem_count == 0 ? absl::OkStatus() : absl::DataLossError("the store is damaged");
}

// "VALUE=N" each.
absl::StatusOr<std::map<std::string, int>> ParseQuotas(const std::vector<std::string>& texts) {
  std::map<std::string, int> quotas;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    int tasks = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &tasks) || tasks < 0) {
      return FieldError("quota", absl::StrCat(Quoted(text), " is no quota"),
                        "VALUE=N: a value of the fair share's label, or *, and 0 or more tasks");
    }
    PLUMBLINE_RETURN_IF_ERROR(CheckChosenName(parts.first, "quota", kMaxLabelBytes));
    if (!quotas.emplace(parts.first, tasks).second) {
      return FieldError("quota", absl::StrCat(Quoted(parts.first), " is given twice"),
                        "each value once");
    }
  }
  return quotas;
}

absl::Status Run(const Flags& flags, const sigset_t& signals) {
  LogOptions logging;
  PLUMBLINE_ASSIGN_OR_RETURN(logging.format, ParseLogFormat(flags.log_format));
  ConfigureLogging(logging);
  RouteGrpcLog();

  const std::string backup_dir =
      flags.backup_dir.empty() ? absl::StrCat(flags.data_dir, "/backups") : flags.backup_dir;
  if (flags.restore.has_value()) {
    return Backups::Restore(backup_dir, *flags.restore, flags.data_dir);
  }
  if (flags.check) return Check(flags.data_dir);
  CoordinatorOptions options;
  options.backup_dir = backup_dir;
  options.step_budget_bytes = flags.step_budget_bytes;
  options.takes_plugin_uploads = flags.takes_plugin_uploads;
  options.listen = {flags.listen};
  options.http = flags.http;
  options.health = flags.health;
  options.web_dir = flags.web_dir;
  options.cors_origins = flags.cors_origins;
  options.tls = flags.tls;
  options.access_file = flags.access_file;
  options.limits = flags.limits;
  options.http_limits.max_connections_per_address = flags.http_connections;
  if (!flags.ready_file.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(CheckOutputPath("ready-file", flags.ready_file));
  }
  options.data_dir = flags.data_dir;
  PLUMBLINE_RETURN_IF_ERROR(ParseKeep("keep-jobs", flags.keep_jobs, &options.retention.keep_jobs));
  PLUMBLINE_RETURN_IF_ERROR(
      ParseKeep("keep-events", flags.keep_events, &options.retention.keep_events));
  SchedulerOptions& scheduler = options.scheduler;
  if (!absl::ParseDuration(flags.lease_duration, &scheduler.lease_duration) ||
      scheduler.lease_duration < absl::Seconds(1) || scheduler.lease_duration > absl::Hours(1)) {
    return FieldError("lease-duration",
                      absl::StrCat(Quoted(flags.lease_duration), " is not possible"), "1s to 1h");
  }
  PLUMBLINE_RETURN_IF_ERROR(
      CheckChosenName(flags.fair_share_label, "fair-share-label", kMaxLabelBytes));
  scheduler.fair_share_label = flags.fair_share_label;
  PLUMBLINE_ASSIGN_OR_RETURN(scheduler.quotas, ParseQuotas(flags.quotas));
  // Several heartbeats may be lost before a lease is.
  scheduler.heartbeat_interval = scheduler.lease_duration / 5;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                             Coordinator::Start(std::move(options)));
  Log(LogLevel::kInfo, "serving",
      {{"listen", coordinator->addresses()[0]},
       {"http", coordinator->http_address()},
       {"health", coordinator->health_address()}});
  if (!flags.ready_file.empty()) {
    const nlohmann::json ready = {{"listen", coordinator->addresses()[0]},
                                  {"http", coordinator->http_address()},
                                  {"health", coordinator->health_address()}};
    PLUMBLINE_RETURN_IF_ERROR(
        WriteFileAtomically(flags.ready_file, absl::StrCat(ready.dump(), "\n")));
  }
  const ServiceManager manager = ServiceManager::FromEnvironment();
  manager.Tell(absl::StrCat("READY=1\nSTATUS=serving ", coordinator->addresses()[0], "\n"));
  int signal = 0;
  sigwait(&signals, &signal);
  manager.Tell("STOPPING=1\n");
  Log(LogLevel::kInfo, "shutting down", {{"signal", signal}});
  coordinator->Shutdown(kShutdownGrace);
  return absl::OkStatus();
}

// As many files as the process may have, not as many as it is given at first: gRPC takes every
// connection, and without files there is neither HTTP nor a certificate that can be read again.
void TakeEveryFile() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int ServerMain(int argc, char** argv) {
  TakeEveryFile();
  Flags flags;
  CLI::App app(
      "The coordinator of Plumbline: takes jobs, gives their tasks to workers, and keeps "
      "what comes of them.",
      "plumbline-server");
  app.set_version_flag("--version", absl::StrCat("plumbline-server ", kVersion));
  AddReferenceFlag(&app);
  app.add_option("--listen", flags.listen,
                 "Serve gRPC at HOST:PORT (port 0: a free one) or unix:PATH")
      ->capture_default_str();
  app.add_option("--http", flags.http,
                 "Serve gRPC-Web, artifacts, /metrics, /healthz and /readyz at HOST:PORT")
      ->capture_default_str();
  app.add_option("--health", flags.health,
                 "Serve grpc.health.v1 alone at HOST:PORT, without TLS, for a cluster's probes. "
                 "Default: only at --listen")
      ->option_text("HOST:PORT");
  app.add_option("--tls-cert", flags.tls.certificate,
                 "PEM file: certificate, with its chain, of --listen and --http; looked at again "
                 "every second")
      ->option_text("FILE");
  app.add_option("--tls-key", flags.tls.key, "PEM file: its private key")->option_text("FILE");
  app.add_option("--tls-client-ca", flags.tls.client_ca,
                 "PEM file: who may sign clients' certificates, which every client must have then")
      ->option_text("FILE");
  app.add_option("--access-file", flags.access_file,
                 "Who may call, as `plumbline token create` writes it; looked at again every "
                 "second. Default: everybody on this machine may everything")
      ->option_text("FILE");
  app.add_option("--call-rate", flags.limits.calls_per_second,
                 "Calls a second that one token or certificate may make; 0: no limit")
      ->transform(Number(0, 1e9))
      ->capture_default_str();
  app.add_option("--max-streams", flags.limits.streams,
                 "Streams that one token or certificate may have open; 0: no limit")
      ->transform(WholeNumber(0))
      ->capture_default_str();
  app.add_option("--http-connections", flags.http_connections,
                 "Connections to --http that one address may have open, loopback any number; 0: no "
                 "limit")
      ->transform(WholeNumber(0))
      ->capture_default_str();
  app.add_option("--upload-quota", flags.limits.open_upload_bytes,
                 "Bytes of unfinished uploads that one token or certificate may have, e.g. 1TiB; "
                 "0: no limit")
      ->transform(Bytes())
      ->default_str("1TiB");
  app.add_option("--web-dir", flags.web_dir, "Serve the dashboard's files of this folder at --http")
      ->option_text("DIR");
  app.add_option("--cors-origin", flags.cors_origins,
                 "Let pages of this origin call --http from a browser, e.g. https://HOST:PORT. "
                 "Default: only the server's own pages")
      ->option_text("ORIGIN ...");
  app.add_option("--data-dir", flags.data_dir, "Keep jobs and files in this folder")->required();
  app.add_option("--ready-file", flags.ready_file,
                 "Write the addresses to this file, as JSON, once they are served");
  app.add_option("--log-format", flags.log_format, "text or json")->capture_default_str();
  app.add_option("--lease-duration", flags.lease_duration,
                 "A worker that is not heard of for so long loses its tasks, e.g. 15s")
      ->capture_default_str();
  app.add_option("--step-budget", flags.step_budget_bytes,
                 "Keep at most so many bytes of saved steps, e.g. 200GiB: above it the runs used "
                 "longest ago go that no live job needs. Default: no limit")
      ->transform(Bytes());
  app.add_option("--fair-share-label", flags.fair_share_label,
                 "Share the workers evenly among the values of this label of jobs")
      ->capture_default_str();
  app.add_option("--quota", flags.quotas,
                 "VALUE=N: run at most N tasks at once of jobs with this value of the fair share's "
                 "label; *=N: of every value that is not named. May be given more than once");
  app.add_flag("--allow-plugin-uploads", flags.takes_plugin_uploads,
               "Take plug-ins that clients upload, for workers that load them: whoever may upload "
               "one runs code on the workers' machines");
  app.add_option("--backup-dir", flags.backup_dir,
                 "Keep backups in this folder. Default: backups in --data-dir");
  app.add_option("--keep-jobs", flags.keep_jobs,
                 "Delete jobs that ended so long ago, with their reports and artifacts")
      ->capture_default_str();
  app.add_option("--keep-events", flags.keep_events,
                 "Delete the events, all but the last, of jobs that ended so long ago")
      ->capture_default_str();
  app.add_flag("--check", flags.check,
               "Verify --data-dir, which no server may have open, and end: every record, checksum "
               "and digest. Exit status 1 if something is wrong");
  app.add_option("--restore", flags.restore,
                 "Write this backup (its number; 0: the newest) to --data-dir, where there must be "
                 "no store, and end")
      ->transform(WholeNumber(0, INT64_MAX));
  try {
    ParseCommandWords(&app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s\n", ParseErrorText(app, error).c_str());
    return 2;
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
  return absl::IsInvalidArgument(status) ? 2 : flags.check && absl::IsDataLoss(status) ? 1 : 3;
}

}  // namespace plumbline::server
