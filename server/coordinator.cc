#include "server/coordinator.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/diagnostic_handlers.h"
#include "common/health_server.h"
#include "common/host_and_port.h"
#include "common/http_server.h"
#include "common/listening.h"
#include "common/logging.h"
#include "common/metrics.h"
#include "common/status.h"
#include "server/access/authenticator.h"
#include "server/access/denied_calls.h"
#include "server/access/gatekeeper.h"
#include "server/access/gates.h"
#include "server/access/reloader.h"
#include "server/access/server_tls.h"
#include "server/access/unknown_methods.h"
#include "server/api/admin_service.h"
#include "server/api/api.h"
#include "server/api/artifact_service.h"
#include "server/api/job_service.h"
#include "server/api/store_service.h"
#include "server/api/worker_service.h"
#include "server/grpc_connections.h"
#include "server/health_watch.h"
#include "server/http/artifact_handler.h"
#include "server/http/grpc_web_bridge.h"
#include "server/http/origin_filter.h"
#include "server/http/static_files.h"
#include "server/listen_address.h"

namespace plumbline::server {
namespace {

// Enough that a slow disk is kept busy; they wait more than they compute.
constexpr int kBlockingThreads = 8;

// Ports of `address` replaced by the one that was bound.
std::string BoundAddress(const std::string& address, int port) {
  if (absl::StartsWith(address, "unix:")) return address;
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

}  // namespace

class Coordinator::Impl {
 public:
  explicit Impl(CoordinatorOptions options)
      : options_(std::move(options)),
        server_metrics_(&metrics_),
        pool_(kBlockingThreads),
        denied_calls_(options_.clock,
                      [this](v1::AuditEvent audit) { StoreDenied(std::move(audit)); }),
        http_(options_.http_limits) {}

  ~Impl() {
    reloader_.reset();
    Shutdown(absl::ZeroDuration());
    retention_.reset();
    if (dispatcher_ != nullptr) dispatcher_->StopClock();
    steps_.reset();
    // Its last answers still reach the dispatcher.
    store_.reset();
  }

  absl::Status Start() {
    PLUMBLINE_RETURN_IF_ERROR(CheckOptions());
    PLUMBLINE_RETURN_IF_ERROR(LoadAccess());
    PLUMBLINE_RETURN_IF_ERROR(CheckAddresses());
    PLUMBLINE_RETURN_IF_ERROR(OpenStore());
    Dispatcher::Options dispatcher;
    dispatcher.scheduler = options_.scheduler;
    dispatcher.on_attempt_done = [this](absl::Duration duration) {
      server_metrics_.RecordAttempt(duration);
    };
    dispatcher.on_step = [this](const v1::StepEvent& step) {
      server_metrics_.RecordStep(step.origin(), absl::Seconds(step.seconds()));
    };
    dispatcher_ = std::make_unique<Dispatcher>(options_.clock, options_.ids, store_.get(), &hub_,
                                               std::move(dispatcher));
    PLUMBLINE_RETURN_IF_ERROR(dispatcher_->Start());
    PLUMBLINE_RETURN_IF_ERROR(OpenSteps());
    gatekeeper_ = std::make_unique<Gatekeeper>(GatekeeperOptions());
    StartReloader();
    api_.gatekeeper = gatekeeper_.get();
    api_.limits = options_.limits;
    api_.clock = options_.clock;
    api_.ids = options_.ids;
    api_.store = store_.get();
    api_.steps = steps_.get();
    api_.backups = backups_.get();
    api_.files = files_.get();
    api_.dispatcher = dispatcher_.get();
    api_.hub = &hub_;
    api_.pool = &pool_;
    api_.metrics = &server_metrics_;
    api_.stopping = &stopping_;
    api_.takes_plugin_uploads = options_.takes_plugin_uploads;
    PLUMBLINE_RETURN_IF_ERROR(StartGrpc());
    PLUMBLINE_RETURN_IF_ERROR(StartHttp());
    PLUMBLINE_RETURN_IF_ERROR(StartHealth());
    retention_ = std::make_unique<Retention>(options_.clock, store_.get(), dispatcher_.get(),
                                             files_.get(), options_.retention);
    return absl::OkStatus();
  }

  void Shutdown(absl::Duration grace) {
    if (std::exchange(shut_down_, true)) return;
    stopping_ = true;
    health_watch_.reset();
    if (server_ != nullptr) {
      SetReady(false);
      dispatcher_->Stop();
      hub_.NotifyEverybody();
      bridge_.Close();
      // gRPC goes by the machine's own clock.
      server_->Shutdown(absl::ToChronoTime(SystemClock()->Now() + grace));
      server_->Wait();
      denied_calls_.FlushAll();
    }
    http_.Stop();
  }

  const std::vector<std::string>& addresses() const { return addresses_; }
  std::string http_address() const {
    return options_.http.empty() ? "" : BoundAddress(options_.http, http_.port());
  }
  std::string health_address() const {
    return health_ == nullptr ? "" : BoundAddress(options_.health, health_->port());
  }

 private:
  static constexpr char kLiveness[] = "liveness";
  static constexpr char kReadiness[] = "readiness";

  absl::Status CheckOptions() const {
    if (options_.data_dir.empty()) return FieldError("data-dir", "is not set", "a folder");
    if (options_.listen.empty()) return FieldError("listen", "is not set", "an address");
    for (const std::string& address : options_.listen) {
      PLUMBLINE_RETURN_IF_ERROR(CheckListenAddress(address, "listen", IsProtected()));
    }
    if (!options_.health.empty()) {
      PLUMBLINE_RETURN_IF_ERROR(
          ParseHostAndPort(options_.health, 0, "health", "HOST:PORT or [IPV6]:PORT").status());
    }
    PLUMBLINE_RETURN_IF_ERROR(CheckOrigins(options_.cors_origins, "cors-origin"));
    return options_.http.empty() ? absl::OkStatus()
                                 : CheckListenAddress(options_.http, "http", IsProtected());
  }

  // A server that cannot be reached makes no store. Of one that is there its own error comes first:
  // whoever has it in use may well have the addresses, too.
  absl::Status CheckAddresses() const {
    std::error_code error;
    if (std::filesystem::exists(StorePath(), error)) return absl::OkStatus();
    std::vector<std::pair<std::string, std::string>> addresses;
    for (const std::string& address : options_.listen) {
      // The folder of such a socket is still to be made.
      if (absl::StartsWith(address, absl::StrCat("unix:", options_.data_dir, "/"))) continue;
      addresses.emplace_back("listen", address);
    }
    if (!options_.http.empty()) addresses.emplace_back("http", options_.http);
    if (!options_.health.empty()) addresses.emplace_back("health", options_.health);
    return CheckCanListenOnAll(addresses);
  }

  std::string StorePath() const { return absl::StrCat(options_.data_dir, "/store"); }

  bool IsProtected() const {
    return !options_.tls.certificate.empty() && !options_.access_file.empty();
  }

  absl::Status LoadAccess() {
    const TlsFiles& files = options_.tls;
    if (files.certificate.empty() != files.key.empty()) {
      return FieldError(files.key.empty() ? "tls-key" : "tls-cert", "is not set",
                        "tls-cert and tls-key together");
    }
    if (!files.client_ca.empty() && files.certificate.empty()) {
      return FieldError("tls-client-ca", "is set without TLS", "tls-cert and tls-key with it");
    }
    if (!files.certificate.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(tls_, ServerTls::Load(files, options_.clock));
    }
    if (!options_.access_file.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(authenticator_, Authenticator::Load(options_.access_file));
    }
    if (!options_.web_dir.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(web_, StaticFiles::Load(options_.web_dir, "web-dir"));
    }
    return absl::OkStatus();
  }

  void StartReloader() {
    std::map<std::string, std::function<absl::Status()>> reloads;
    if (tls_ != nullptr) reloads["TLS"] = [this] { return tls_->Reload(); };
    if (authenticator_ != nullptr) {
      reloads["access"] = [this] {
        const absl::Status status = authenticator_->Reload();
        gatekeeper_->EndStreams();
        denied_calls_.Flush();
        return status;
      };
    }
    if (!reloads.empty()) {
      reloader_ = std::make_unique<Reloader>(std::move(reloads), options_.reload_interval);
    }
  }

  Gatekeeper::Options GatekeeperOptions() {
    Gatekeeper::Options gatekeeper;
    gatekeeper.clock = options_.clock;
    gatekeeper.authenticator = authenticator_.get();
    gatekeeper.limits = options_.limits;
    gatekeeper.on_ended_streams = [this] { hub_.NotifyEverybody(); };
    gatekeeper.on_refused = [this](absl::string_view method, const absl::Status& status) {
      server_metrics_.RecordCall(method, absl::StatusCodeToString(status.code()),
                                 absl::ZeroDuration());
    };
    gatekeeper.on_denied_change = [this](const Caller& caller, const absl::Status& denied) {
      denied_calls_.Add(caller, denied);
    };
    return gatekeeper;
  }

  void StoreDenied(v1::AuditEvent audit) {
    const auto told = [](const absl::Status& status) {
      if (status.ok()) return;
      Log(LogLevel::kError, "an audit event cannot be stored", {{"error", status.message()}});
    };
    WriteSet set;
    set.AppendAudit(std::move(audit));
    if (const absl::Status refused = store_->Commit(&set, told); !refused.ok()) told(refused);
  }

  absl::Status OpenStore() {
    StoreOptions store;
    store.path = StorePath();
    store.clock = options_.clock;
    store.env = options_.env;
    store.on_write = [this](absl::Duration duration, int sets) {
      server_metrics_.RecordStoreWrite(duration, sets);
    };
    PLUMBLINE_ASSIGN_OR_RETURN(store_, Store::Open(std::move(store)));
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> artifacts, store_->ArtifactNames());
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> uploads, store_->UploadNames());
    PLUMBLINE_ASSIGN_OR_RETURN(files_, ArtifactFiles::Open(options_.data_dir, artifacts, uploads));
    return absl::OkStatus();
  }

  absl::Status OpenSteps() {
    StepStoreOptions steps;
    steps.clock = options_.clock;
    steps.budget_bytes = options_.step_budget_bytes;
    steps.jobs_needing = [this](const v1::Run& run) { return dispatcher_->JobsNeeding(run); };
    steps.on_step_written = [this](absl::Duration duration, int64_t bytes) {
      server_metrics_.RecordStepWrite(duration, bytes);
    };
    PLUMBLINE_ASSIGN_OR_RETURN(steps_, StepStore::Open(store_.get(), std::move(steps)));
    backups_ = std::make_unique<Backups>(store_.get(), steps_.get(), files_.get(),
                                         options_.backup_dir.empty()
                                             ? absl::StrCat(options_.data_dir, "/backups")
                                             : options_.backup_dir);
    return absl::OkStatus();
  }

  absl::Status Ready() const {
    if (stopping_) return absl::UnavailableError("the server is shutting down");
    return store_->Health();
  }

  absl::Status StartHealth() {
    if (!options_.health.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(health_, HealthServer::Start(options_.health, "health"));
    }
    health_watch_ = std::make_unique<HealthWatch>([this] { return Ready().ok(); },
                                                  [this](bool ready) { SetReady(ready); });
    return absl::OkStatus();
  }

  void SetReady(bool ready) {
    server_->GetHealthCheckService()->SetServingStatus(kReadiness, ready);
    if (health_ != nullptr) health_->SetReady(ready);
  }

  absl::Status StartHttp() {
    if (options_.http.empty()) return absl::OkStatus();
    // Before the common handlers, whose figures it brings up to date.
    http_.Handle("GET", "/metrics", [this](const HttpRequest&) {
      server_metrics_.SetScheduler(dispatcher_->Counts(), dispatcher_->Load(),
                                   options_.clock->Now());
      server_metrics_.SetWatchers(hub_.listeners());
      server_metrics_.SetRefusedConnections(http_.refused_connections());
      server_metrics_.SetStepBytes(steps_->size_bytes());
      server_metrics_.SetStore(store_->size_bytes(), store_->Health().ok());
      HttpResponse response;
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      response.body = metrics_.Serialize();
      return response;
    });
    AddDiagnosticHandlers(
        &metrics_, [this] { return Ready(); }, &http_);
    AddArtifactHandler(options_.clock, store_.get(), files_.get(), &http_);
    bridge_.Connect(server_.get(), [this](const std::string& name) {
      return gatekeeper_->CertificateMetadata(name);
    });
    for (const google::protobuf::ServiceDescriptor* const service : GatedServices()) {
      bridge_.AddService(service, &http_);
    }
    AddPreflight(options_.cors_origins, &http_);
    if (!options_.web_dir.empty()) {
      http_.Handle("GET", "/*",
                   [this](const HttpRequest& request) { return web_->Serve(request); });
    } else {
      http_.Handle("GET", "/", [](const HttpRequest& /*request*/) {
        HttpResponse none;
        none.status = 404;
        none.body =
            "No dashboard is served here: start plumbline-server with --web-dir=DIR, the folder of "
            "its files.\n";
        return none;
      });
    }
    http_.SetFilter(MakeOriginFilter(options_.cors_origins,
                                     /*loopback_only=*/IsLoopbackAddress(options_.http)));
    http_.SetExtraHeaders(
        [this](const HttpRequest& request) { return CorsHeaders(options_.cors_origins, request); });
    if (tls_ != nullptr) {
      http_.SetTls([this] { return tls_->identity(); });
    }
    return http_.Start(options_.http);
  }

  absl::Status StartGrpc() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    for (auto* const make : {&NewJobService, &NewArtifactService, &NewAdminService,
                             &NewWorkerService, &NewStoreService}) {
      services_.push_back((*make)(api_));
    }
    grpc::ServerBuilder builder;
    // Reflection is the one synchronous service; it needs no more than this.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    ConfigureConnections(&builder);
    std::vector<int> ports(options_.listen.size(), 0);
    for (size_t i = 0; i < ports.size(); ++i) {
      PLUMBLINE_RETURN_IF_ERROR(CheckCanListen(options_.listen[i], "listen"));
      credentials_.push_back(tls_ == nullptr ? grpc::InsecureServerCredentials()
                                             : ServerTls::Credentials(tls_.get()));
      builder.AddListeningPort(options_.listen[i], credentials_.back(), &ports[i]);
    }
    for (const auto& service : services_) builder.RegisterService(service.get());
    builder.RegisterCallbackGenericService(&unknown_methods_);
    server_ = builder.BuildAndStart();
    for (size_t i = 0; i < ports.size(); ++i) {
      if (server_ == nullptr || ports[i] == 0) {
        return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen[i]));
      }
      addresses_.push_back(BoundAddress(options_.listen[i], ports[i]));
    }
    for (const char* const name : {kLiveness, kReadiness}) {
      server_->GetHealthCheckService()->SetServingStatus(name, true);
    }
    return absl::OkStatus();
  }

  const CoordinatorOptions options_;
  std::atomic<bool> stopping_{false};
  bool shut_down_ = false;

  // In the order in which each needs those before it.
  std::unique_ptr<ServerTls> tls_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Reloader> reloader_;
  Metrics metrics_;
  ServerMetrics server_metrics_;
  EventHub hub_;
  BlockingPool pool_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StepStore> steps_;
  std::unique_ptr<ArtifactFiles> files_;
  std::unique_ptr<Backups> backups_;
  std::unique_ptr<Retention> retention_;
  DeniedCalls denied_calls_;
  std::unique_ptr<Gatekeeper> gatekeeper_;
  Api api_;
  GrpcWebBridge bridge_;
  std::unique_ptr<StaticFiles> web_;
  HttpServer http_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  UnknownMethods unknown_methods_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<HealthWatch> health_watch_;
};

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(CoordinatorOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  PLUMBLINE_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(impl)));
}

void Coordinator::Shutdown(absl::Duration grace) { impl_->Shutdown(grace); }
const std::vector<std::string>& Coordinator::addresses() const { return impl_->addresses(); }
std::string Coordinator::http_address() const { return impl_->http_address(); }
std::string Coordinator::health_address() const { return impl_->health_address(); }

}  // namespace plumbline::server
