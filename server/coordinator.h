#ifndef PLUMBLINE_SERVER_COORDINATOR_H_
#define PLUMBLINE_SERVER_COORDINATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/http_server.h"
#include "common/random_id.h"
#include "common/tls/tls_identity.h"
#include "server/access/gatekeeper.h"
#include "server/retention.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {

struct CoordinatorOptions {
  // Where gRPC is served, one or more of "HOST:PORT" (port 0: a free one) and "unix:PATH". Only
  // this machine's own addresses.
  std::vector<std::string> listen = {"127.0.0.1:7433"};
  // Where HTTP is served: "HOST:PORT", or "" for nowhere.
  std::string http = "127.0.0.1:7434";
  // Where grpc.health.v1 alone is served, without TLS, for probes that speak none: "HOST:PORT", any
  // address, since it tells nothing else; "": nowhere. `listen` serves it too.
  std::string health;
  // What its clients may cost.
  HttpLimits http_limits;
  // Folder of the dashboard's files; "": none is served.
  std::string web_dir;
  // Origins whose pages may call the HTTP port from a browser, besides its own.
  std::vector<std::string> cors_origins;
  // TLS of both; without a certificate there is none.
  TlsFiles tls;
  // Who may call, as `plumbline token` writes it; "": everybody may everything. Addresses of other
  // machines need both.
  std::string access_file;
  PrincipalLimits limits;
  // How often the files of the two are looked at.
  absl::Duration reload_interval = absl::Seconds(1);
  // What outlives the process. Made if it is not there; one coordinator at a time.
  std::string data_dir;
  // Where backups go; "": in data_dir.
  std::string backup_dir;
  // Bytes of saved steps above which the runs used longest ago go. 0: no limit.
  int64_t step_budget_bytes = 0;
  // Whether clients may upload plug-ins: code that workers load. Only those who may run what they
  // like on the workers' machines may be let do it.
  bool takes_plugin_uploads = false;
  SchedulerOptions scheduler;
  RetentionOptions retention;
  // Through which the store's files are reached; null: the machine's own. Must outlive the
  // coordinator.
  rocksdb::Env* env = nullptr;
  // Both must outlive the coordinator.
  Clock* clock = SteadyClock();
  IdSource* ids = RandomIds();
};

// The whole coordinator: `plumbline-server` is this and a main, and the command line's embedded
// mode links it. Methods are called from one thread.
class Coordinator {
 public:
  // Opens the store, goes on where it was left, and serves. FAILED_PRECONDITION with reason
  // STORE_IN_USE where another process has the data folder; UNAVAILABLE where an address cannot be
  // listened on.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(CoordinatorOptions options);

  ~Coordinator();  // Shuts down without grace.
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Not ready any more; ends long polls and watch streams, lets other calls end within `grace`, and
  // makes everything durable. Once.
  void Shutdown(absl::Duration grace);

  // As listened on, ports resolved, in the order of the options.
  const std::vector<std::string>& addresses() const;
  std::string http_address() const;    // "" where HTTP is not served.
  std::string health_address() const;  // "" where health has no port of its own.

 private:
  class Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_COORDINATOR_H_
