#include "client/embedded/embedded_service.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/exit_status.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"
#include "kernels/identity/embedded.h"
#include "kernels/plugin/current_call.h"
#include "server/coordinator.h"
#include "worker/daemon.h"

namespace plumbline::client {
namespace {

// The log begins anew beyond this; one older log is kept.
constexpr off_t kMaxLogBytes = 4 << 20;
// For calls of other commands, which find the next coordinator themselves.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);
// As a command ends whose job failed for what the user gave it.
constexpr int kPluginCrashExitStatus = 2;

// How long a call of a plug-in may keep a command that has been told to end.
constexpr absl::Duration kHangLimit = absl::Seconds(5);

// While it exists, a call of a plug-in that does not come back for kHangLimit ends the process: a
// thread that is in it can be stopped by nothing less. The task is another command's then.
class HangWatch {
 public:
  HangWatch() : thread_([this] { Watch(); }) {}
  ~HangWatch() {
    {
      absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    thread_.join();
  }
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  void Watch() {
    const int64_t call = plugin::CallsBegun();
    absl::MutexLock lock(&mutex_);
    Clock* const clock = SteadyClock();
    if (clock->AwaitUntil(&mutex_, absl::Condition(&done_), clock->Now() + kHangLimit)) return;
    const plugin::CallNote* const note = plugin::RunningCall();
    if (note == nullptr || plugin::CallsBegun() != call) return;
    std::fprintf(stderr, "plumbline: %s has not come back from its call for %s, %s\n",
                 note->implementation, note->node, note->direction);
    // Not _exit: that would be taken for the plug-in's own.
    syscall(SYS_exit_group, kExitInterrupted);
  }

  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Where this process's log goes while it lives.
class LogFile {
 public:
  static absl::StatusOr<std::unique_ptr<LogFile>> Open(const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0 && info.st_size > kMaxLogBytes) {
      std::rename(path.c_str(), (path + ".old").c_str());
    }
    std::FILE* const file = std::fopen(path.c_str(), "ae");
    if (file == nullptr) return FileError(path, "cannot open", errno);
    return std::unique_ptr<LogFile>(new LogFile(file));
  }

  ~LogFile() {
    LogOptions options;
    options.level = LogLevel::kError;
    ConfigureLogging(options);
    std::fclose(file_);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

 private:
  explicit LogFile(std::FILE* file) : file_(file) {
    LogOptions options;
    options.file = file;
    ConfigureLogging(options);
  }

  std::FILE* const file_;
};

}  // namespace

// Members end from the last to the first.
class EmbeddedService::Impl {
 public:
  absl::Status Start(const StateFolder& folder, const std::optional<std::string>& device) {
    PLUMBLINE_ASSIGN_OR_RETURN(log_, LogFile::Open(folder.log_path()));
    server::CoordinatorOptions coordinator;
    coordinator.listen = {folder.socket_address()};
    coordinator.http = "";
    coordinator.data_dir = folder.server_folder();
    coordinator.takes_plugin_uploads = true;
    // A plug-in that ended a command without a word must not end the next ones too.
    coordinator.scheduler.max_plugin_failures = 1;
    PLUMBLINE_ASSIGN_OR_RETURN(coordinator_, server::Coordinator::Start(std::move(coordinator)));
    if (!device.has_value()) return absl::OkStatus();
    worker::WorkerOptions worker;
    worker.server = folder.socket_address();
    worker.device.device = *device;
    // A command may try something on a GPU that a daemon works on.
    worker.shares_device = true;
    worker.state_directory = folder.worker_folder();
    // Its requests come from this user alone, who may open with it what he may open without it.
    worker.checkpoint_roots = {"/"};
    worker.takes_uploaded_plugins = true;
    worker.plugin_crash_exit_status = kPluginCrashExitStatus;
    worker.kernel_identity = EmbeddedKernelIdentity();
    worker.grace = absl::ZeroDuration();
    PLUMBLINE_ASSIGN_OR_RETURN(worker_, worker::Worker::Start(std::move(worker)));
    return worker_->AwaitRegistration();
  }

  ~Impl() {
    // One that a plug-in broke holds threads that never end; the process does.
    if (worker_ != nullptr && worker_->is_broken()) worker_.release();
    if (worker_ != nullptr) {
      const HangWatch watch;
      worker_->RequestDrain();
      if (const absl::Status ended = worker_->Wait(); !ended.ok()) {
        Log(LogLevel::kWarning, "worker ended", {{"error", ended.ToString()}});
      }
      worker_ = nullptr;
    }
    if (coordinator_ != nullptr) coordinator_->Shutdown(kShutdownGrace);
  }

 private:
  std::unique_ptr<LogFile> log_;
  std::unique_ptr<server::Coordinator> coordinator_;
  std::unique_ptr<worker::Worker> worker_;
};

EmbeddedService::EmbeddedService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EmbeddedService::~EmbeddedService() = default;

absl::StatusOr<std::unique_ptr<EmbeddedService>> EmbeddedService::Start(
    const StateFolder& folder, const std::optional<std::string>& device) {
  auto impl = std::make_unique<Impl>();
  PLUMBLINE_RETURN_IF_ERROR(impl->Start(folder, device));
  return std::unique_ptr<EmbeddedService>(new EmbeddedService(std::move(impl)));
}

}  // namespace plumbline::client
