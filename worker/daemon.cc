#include "worker/daemon.h"

#include <filesystem>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/diagnostic_handlers.h"
#include "common/files.h"
#include "common/health_server.h"
#include "common/host_and_port.h"
#include "common/http_server.h"
#include "common/listening.h"
#include "common/logging.h"
#include "common/metrics.h"
#include "common/random_id.h"
#include "common/status.h"
#include "kernels/plugin/registration.h"
#include "worker/artifacts/input_files.h"
#include "worker/device_claim.h"
#include "worker/device_usage.h"
#include "worker/jobs/dispatch.h"
#include "worker/jobs/task_failure.h"
#include "worker/lease/grpc_coordinator.h"
#include "worker/lease/retry.h"
#include "worker/lease/session.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/plugin/crash_reporter.h"
#include "worker/plugin/plugins.h"
#include "worker/state_directory.h"
#include "worker/steps/blob_cache.h"
#include "worker/task_runner.h"
#include "worker/worker_metrics.h"

namespace plumbline::worker {
namespace {

// Some five runs of the released size.
constexpr int64_t kMaxStepCacheBytes = int64_t{4} << 30;

constexpr char kDeviceLabel[] = "device";

// The folders as ResolveUnderRoots wants them: absolute. INVALID_ARGUMENT for one that is not
// there.
absl::StatusOr<std::vector<std::string>> AbsoluteRoots(const std::vector<std::string>& roots) {
  std::vector<std::string> result;
  for (const std::string& root : roots) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(root, error);
    if (error || !std::filesystem::is_directory(path, error)) {
      return FieldError("checkpoint-root", absl::StrCat(Quoted(root), " is no folder"),
                        "an existing folder");
    }
    result.push_back(path.string());
  }
  return result;
}

// What a worker starts with.
struct Parts {
  ClientChannels channels;
  DeviceClaim claim;
  std::unique_ptr<StateDirectory> state;
  WorkerDevice device;
  Plugins plugins;
  Registry registry;
};
// Why there is none is in the log, for whoever wonders where the MP4 are.
absl::StatusOr<const media::FfmpegLibrary*> LoadFfmpeg(bool use) {
  if (!use) return absl::UnavailableError("FFmpeg: this worker was told not to use it");
  absl::StatusOr<const media::FfmpegLibrary*> loaded = media::FfmpegLibrary::Load();
  if (!loaded.ok()) {
    Log(LogLevel::kInfo, "no FFmpeg", {{"reason", loaded.status().message()}});
  }
  return loaded;
}

// Claims the GPU, or else what `options` name, and says in their labels what that is.
absl::StatusOr<DeviceClaim> ClaimDevices(WorkerOptions* options) {
  if (options->shares_device) return DeviceClaim();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string gpu, FindGpuUuid(options->device));
  if (!gpu.empty()) options->claimed_devices = {gpu};
  if (options->claimed_devices.empty()) return DeviceClaim();
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceClaim claim, DeviceClaim::Take(options->claimed_devices));
  const std::string names = absl::StrJoin(options->claimed_devices, ",");
  options->labels.emplace(kDeviceLabel, names);
  options->attempt_labels.emplace(kDeviceLabel, names);
  return claim;
}

class RunningWorker final : public Worker {
 public:
  RunningWorker(WorkerOptions options, Parts parts)
      : options_(std::move(options)),
        claim_(std::move(parts.claim)),
        state_(std::move(parts.state)),
        device_(std::move(parts.device)),
        plugins_(std::move(parts.plugins)),
        registry_(std::move(parts.registry)),
        ffmpeg_(LoadFfmpeg(options_.use_ffmpeg)),
        checkpoints_(options_.checkpoint_roots),
        worker_metrics_(&metrics_),
        device_usage_(device_, options_.clock),
        incarnation_(RandomIds()->NewId() + RandomIds()->NewId()),
        coordinator_(MakeGrpcCoordinator(parts.channels)),
        input_files_(coordinator_.get(), options_.clock,
                     {options_.checkpoint_roots, state_->cache_folder()}),
        step_cache_(state_->steps_folder(), kMaxStepCacheBytes) {
    worker_metrics_.SetDeviceMemory(device_.device->MemoryBytes(), 0);
  }

  ~RunningWorker() override {
    if (!thread_.joinable()) return;
    RequestStop();
    thread_.join();
  }

  absl::Status Begin() {
    if (!options_.grpc_address.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(health_, HealthServer::Start(options_.grpc_address, "grpc"));
    }
    StartSession();
    AddDiagnosticHandlers(
        &metrics_, [this] { return session_->registered(); }, &http_);
    if (!options_.metrics_address.empty()) {
      PLUMBLINE_RETURN_IF_ERROR(http_.Start(options_.metrics_address));
    }
    if (!plugins_.empty()) WatchPlugins();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  void RequestDrain() override { session_->Drain(options_.grace); }
  void RequestStop() override { session_->Drain(absl::ZeroDuration()); }

  absl::Status Wait() override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&ended_));
    return end_status_;
  }

  absl::Status AwaitRegistration() override { return session_->AwaitRegistration(); }
  bool is_broken() const override {
    absl::MutexLock lock(&mutex_);
    return broken_;
  }
  std::string name() const override { return session_->worker_name(); }
  int metrics_port() const override { return http_.port(); }
  int grpc_port() const override { return health_ == nullptr ? 0 : health_->port(); }

 private:
  // Different workers wait for different times before they try again.
  uint64_t Seed() const { return absl::HashOf(incarnation_); }

  void StartSession() {
    SessionOptions session;
    session.registration.set_worker_id(state_->worker_id());
    session.registration.set_incarnation(incarnation_);
    v1::WorkerCapabilities& capabilities = *session.registration.mutable_capabilities();
    capabilities = DescribeWorker(device_, registry_, options_.kernel_identity);
    for (const v1::Plugin& plugin : plugins_.descriptions()) *capabilities.add_plugins() = plugin;
    capabilities.set_takes_uploaded_plugins(options_.takes_uploaded_plugins);
    capabilities.set_has_media(ffmpeg_.ok());
    session.registration.mutable_labels()->insert(options_.labels.begin(), options_.labels.end());
    session.registration.mutable_attempt_labels()->insert(options_.attempt_labels.begin(),
                                                          options_.attempt_labels.end());
    session.on_registered = [this](bool registered) {
      if (health_ != nullptr) health_->SetReady(registered);
    };
    session.usage = [this] {
      v1::DeviceUsage usage = device_usage_.Measure();
      worker_metrics_.SetDeviceUsage(usage);
      return usage;
    };
    session.grace = options_.grace;
    session.backoff_seed = Seed();
    session_ = std::make_unique<Session>(coordinator_.get(), options_.clock, std::move(session));
  }

  TaskRunnerOptions RunnerOptions() {
    TaskRunnerOptions runner;
    runner.coordinator = coordinator_.get();
    runner.clock = options_.clock;
    runner.device = device_.device.get();
    runner.threads = device_.threads;
    runner.registry = &registry_;
    runner.plugins = &plugins_;
    runner.takes_uploaded_plugins = options_.takes_uploaded_plugins;
    runner.before_uploaded_plugins = [this] { WatchPlugins(); };
    runner.on_broken_device = [this] {
      broken_device_ = true;
      RequestStop();
    };
    runner.kernel_identity = &options_.kernel_identity;
    runner.libraries = NumericalLibraries(device_.device->kind());
    runner.checkpoints = &checkpoints_;
    runner.input_files = &input_files_;
    runner.step_cache = &step_cache_;
    runner.state = state_.get();
    runner.metrics = &worker_metrics_;
    runner.ffmpeg = ffmpeg_;
    runner.release_reason = [this] { return session_->release_reason(); };
    runner.backoff_seed = Seed();
    return runner;
  }

  void Run() {
    if (!plugins_.empty()) UseAlternateStack();
    TaskRunner runner(RunnerOptions(), jobs::RunJob);
    absl::Status status;
    while (true) {
      const absl::StatusOr<std::shared_ptr<HeldTask>> task = session_->Acquire();
      if (!task.ok()) status = task.status();
      if (!task.ok() || *task == nullptr) break;
      Hold(*task);
      runner.Run(task->get());
      Hold(nullptr);
      session_->Finish();
    }
    if (broken_device_) {
      status =
          absl::InternalError("a plug-in broke the device, which this process cannot use again");
    }
    session_->SignOff();
    absl::MutexLock lock(&mutex_);
    end_status_ = status;
    ended_ = true;
  }

  void Hold(std::shared_ptr<HeldTask> task) {
    absl::MutexLock lock(&mutex_);
    held_ = std::move(task);
  }

  // Of thread_, or before it is there.
  void WatchPlugins() {
    UseAlternateStack();
    if (crash_reporter_ != nullptr) return;
    CrashReporterOptions reporter;
    reporter.report = [this](const absl::Status& fault) { ReportBroken(fault); };
    reporter.call_limit = options_.plugin_call_limit;
    reporter.exit_status = options_.plugin_crash_exit_status;
    reporter.clock = options_.clock;
    crash_reporter_ = CrashReporter::Start(std::move(reporter));
  }

  // On the reporter's thread: fails the task, so that nobody tries it again, and signs off.
  void ReportBroken(const absl::Status& fault) {
    std::shared_ptr<HeldTask> task;
    {
      absl::MutexLock lock(&mutex_);
      broken_ = true;
      task = held_;
    }
    if (task != nullptr) {
      v1::CompleteTaskRequest request;
      request.set_task(task->name());
      request.set_fencing_token(task->fencing_token());
      *request.mutable_failure() = jobs::MakeTaskFailure(fault);
      const absl::Status completed = RetryWhileTransient(
          options_.clock, Backoff(absl::Milliseconds(100), absl::Seconds(1), Seed()),
          *task->writes(), [&] {
            return coordinator_->CompleteTask(request, {absl::Seconds(5), task->writes()});
          });
      Log(LogLevel::kWarning, "task failed",
          {{"task", task->name()}, {"error", fault.ToString()}, {"told", completed.ToString()}});
    }
    session_->SignOff();
    absl::MutexLock lock(&mutex_);
    end_status_ = fault;
    ended_ = true;
  }

  const WorkerOptions options_;
  const DeviceClaim claim_;
  const std::unique_ptr<StateDirectory> state_;
  const WorkerDevice device_;
  const Plugins plugins_;
  const Registry registry_;
  const absl::StatusOr<const media::FfmpegLibrary*> ffmpeg_;
  std::unique_ptr<CrashReporter> crash_reporter_;  // Of thread_; null while nothing can crash.
  bool broken_device_ = false;                     // Of thread_.
  jobs::CheckpointCache checkpoints_;              // Of thread_.
  Metrics metrics_;
  WorkerMetrics worker_metrics_;
  DeviceUsageMeter device_usage_;  // Of the session's thread.
  const std::string incarnation_;
  const std::unique_ptr<Coordinator> coordinator_;
  InputFiles input_files_;  // Of thread_.
  steps::BlobCache step_cache_;
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<Session> session_;
  HttpServer http_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<HeldTask> held_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(WorkerOptions options) {
  if (options.server.empty()) {
    return FieldError("server", "is not set", "HOST:PORT, unix:PATH");
  }
  if (options.state_directory.empty()) {
    return FieldError("state-dir", "is not set", "a folder that this worker may write to");
  }
  std::vector<std::pair<std::string, std::string>> addresses;
  for (const auto& [field, address] :
       {std::pair("metrics", options.metrics_address), std::pair("grpc", options.grpc_address)}) {
    if (address.empty()) continue;
    PLUMBLINE_RETURN_IF_ERROR(
        ParseHostAndPort(address, 0, field, "HOST:PORT or [IPV6]:PORT").status());
    addresses.emplace_back(field, address);
  }
  // A worker that cannot be reached makes no folder. Of one that is there its own error comes
  // first: whoever has it in use may well have the addresses, too.
  std::error_code error;
  if (!std::filesystem::exists(options.state_directory, error)) {
    PLUMBLINE_RETURN_IF_ERROR(CheckCanListenOnAll(addresses));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(options.checkpoint_roots, AbsoluteRoots(options.checkpoint_roots));
  GuardFolders(options.checkpoint_roots);
  PLUMBLINE_ASSIGN_OR_RETURN(ClientChannels channels,
                             ClientChannels::Load(options.server, options.credentials));
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceClaim claim, ClaimDevices(&options));
  PLUMBLINE_ASSIGN_OR_RETURN(WorkerDevice device, MakeWorkerDevice(options.device));
  PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<StateDirectory> state,
                             StateDirectory::Open(options.state_directory, RandomIds()));
  PluginOptions plugin_options;
  plugin_options.copies_folder = state->plugins_folder();
  // Copies of earlier processes; this one has loaded none yet.
  std::filesystem::remove_all(plugin_options.copies_folder, error);
  plugin_options.device = plugin::AbilityOf(*device.device);
  plugin_options.probe.clock = options.clock;
  Plugins plugins(plugin_options);
  for (const std::string& folder : options.plugin_folders) {
    PLUMBLINE_RETURN_IF_ERROR(plugins.AddFolder(folder));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(Registry registry, plugins.MakeRegistry());
  auto worker = std::make_unique<RunningWorker>(
      std::move(options), Parts{std::move(channels), std::move(claim), std::move(state),
                                std::move(device), std::move(plugins), std::move(registry)});
  PLUMBLINE_RETURN_IF_ERROR(worker->Begin());
  return worker;
}

}  // namespace plumbline::worker
