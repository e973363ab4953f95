#include "worker/worker_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/byte_size.h"
#include "common/clock.h"
#include "common/command_errors.h"
#include "common/command_reference.h"
#include "common/files.h"
#include "common/grpc_log.h"
#include "common/logging.h"
#include "common/output_path.h"
#include "common/service_manager.h"
#include "common/status.h"
#include "common/version.h"
#include "kernels/identity/embedded.h"
#include "nlohmann/json.hpp"
#include "worker/daemon.h"
#include "worker/in_use.h"
#include "worker/plugin/probe.h"
#include "worker/surroundings.h"

namespace plumbline::worker {
namespace {

constexpr char kFooter[] =
    "SIGTERM and SIGINT end a worker in good order: what runs is finished if it can be within\n"
    "--grace, and handed back. Ctrl-C twice, or SIGTERM again later, ends it at once.\n"
    "\n"
    "Exit status: 0 ended in good order (by a signal: --preempted-exit-status), 2 wrong use, 3\n"
    "failed, 75 another process has the device or the state folder.";

constexpr int kBadUse = 2;
constexpr int kFailed = 3;
// Another process has the device or the state folder: EX_TEMPFAIL of sysexits.h.
constexpr int kInUse = 75;

// A scheduler may tell the same thing twice, e.g. a job's script and then all of the job's
// processes.
constexpr absl::Duration kSameNotice = absl::Seconds(2);

struct Flags {
  WorkerOptions worker;
  std::vector<std::string> labels;
  double plugin_call_seconds = 600;
  std::string memory;
  std::string log_format = "text";
  std::string ready_file;
  bool check = false;
  double grace_seconds = 20;
  int preempted_exit_status = 0;
};

void AddFlags(CLI::App* app, Flags* flags) {
  WorkerOptions& worker = flags->worker;
  app->set_version_flag("--version", absl::StrCat("plumbline-worker ", kVersion));
  AddReferenceFlag(app);
  app->add_option("--server", worker.server, "the coordinator: HOST:PORT or unix:PATH")
      ->envname("PLUMBLINE_SERVER")
      ->required();
  app->add_option("--token-file", worker.credentials.token_file,
                  "file that holds the bearer token, of role worker")
      ->type_name("FILE");
  app->add_option("--ca", worker.credentials.ca,
                  "PEM file: who may sign the coordinator's certificate; TLS")
      ->type_name("FILE");
  app->add_option("--cert", worker.credentials.cert,
                  "PEM file: this worker's certificate, with --key")
      ->type_name("FILE");
  app->add_option("--key", worker.credentials.key, "PEM file: this worker's private key")
      ->type_name("FILE");
  app->add_option("--checkpoint-root", worker.checkpoint_roots,
                  "folder that checkpoints and worker: files lie in; may be given several times")
      ->type_name("DIR");
  app->add_option("--state-dir", worker.state_directory,
                  "folder of this worker alone: its id and fetched files")
      ->type_name("DIR")
      ->capture_default_str();
  app->add_option("--device", worker.device.device,
                  "cpu; cuda:N in a build with CUDA; auto: a GPU if there is one")
      ->envname("PLUMBLINE_DEVICE")
      ->capture_default_str();
  app->add_option("--threads", worker.device.threads,
                  "threads of the CPU (default: one for each processor)")
      ->type_name("N")
      ->transform(WholeNumber(0));
  app->add_option("--memory", flags->memory,
                  "memory that tasks may use, e.g. 16GiB (default: four fifths of the machine's)")
      ->type_name("BYTES");
  app->add_option("--plugins", worker.plugin_folders,
                  "folder whose *.so are loaded as plug-ins; may be given several times")
      ->type_name("DIR");
  app->add_flag("--allow-plugin-uploads", worker.takes_uploaded_plugins,
                "load plug-ins that jobs bring: whoever may upload one runs code here");
  app->add_option("--plugin-call-limit", flags->plugin_call_seconds,
                  "seconds after which a call of a plug-in has hung: its task fails and the worker "
                  "ends")
      ->transform(Number(1, 86400))
      ->capture_default_str();
  app->add_flag("!--no-ffmpeg", worker.use_ffmpeg,
                "neither read nor make MP4; frames are kept, and their MP4 is made elsewhere");
  app->add_flag("--share-device", worker.shares_device,
                "do not insist on a GPU, or GPUs that Slurm gave, of this worker alone");
  app->add_option("--label", flags->labels, "KEY=VALUE, for placement; may be given several times");
  app->add_option("--metrics", worker.metrics_address,
                  "where /metrics, /healthz and /readyz are served: HOST:PORT")
      ->capture_default_str();
  app->add_option("--grpc", worker.grpc_address,
                  "where gRPC health and reflection are served: HOST:PORT")
      ->capture_default_str();
  app->add_option("--grace", flags->grace_seconds,
                  "seconds that a task may still run after SIGTERM before it is handed back")
      ->transform(Number(0, 86400))
      ->capture_default_str();
  app->add_option("--preempted-exit-status", flags->preempted_exit_status,
                  "exit status once SIGTERM or SIGINT has ended the worker in good order, for a "
                  "scheduler that is to start it again")
      ->type_name("N")
      ->transform(WholeNumber(0, 255))
      ->capture_default_str();
  app->add_option("--log-format", flags->log_format, "text or json")->capture_default_str();
  app->add_option("--ready-file", flags->ready_file,
                  "written once the worker is registered: JSON with its name and addresses")
      ->type_name("FILE");
  app->add_flag(
      "--check-flags", flags->check,
      "say whether these flags are accepted, and end; nothing that they name is looked at");
}

// A folder that is the user's own, unless a flag names another.
std::string DefaultStateDirectory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != 0) {
    return absl::StrCat(state, "/plumbline/worker");
  }
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "." : home, "/.local/state/plumbline/worker");
}

absl::Status Finish(Flags* flags) {
  for (const std::string& label : flags->labels) {
    const std::vector<std::string> parts = absl::StrSplit(label, absl::MaxSplits('=', 1));
    if (parts.size() != 2 || parts[0].empty()) {
      return FieldError("label", absl::StrCat("is ", Quoted(label)), "KEY=VALUE");
    }
    if (!flags->worker.labels.emplace(parts[0], parts[1]).second) {
      return FieldError("label", absl::StrCat(Quoted(parts[0]), " is given twice"),
                        "each key once");
    }
  }
  if (!flags->memory.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(flags->worker.device.memory_bytes,
                               ParseByteSize(flags->memory, "memory"));
  }
  if (!flags->ready_file.empty() && !flags->check) {
    PLUMBLINE_RETURN_IF_ERROR(CheckOutputPath("ready-file", flags->ready_file));
  }
  flags->worker.grace = absl::Seconds(flags->grace_seconds);
  flags->worker.plugin_call_limit = absl::Seconds(flags->plugin_call_seconds);
  flags->worker.attempt_labels = ClusterLabels(&std::getenv);
  flags->worker.claimed_devices = AllottedGpus(&std::getenv);
  flags->worker.kernel_identity = EmbeddedKernelIdentity();
  LogOptions log;
  PLUMBLINE_ASSIGN_OR_RETURN(log.format, ParseLogFormat(flags->log_format));
  ConfigureLogging(log);
  RouteGrpcLog();
  return absl::OkStatus();
}

// Where the signal handler writes the numbers of signals, and a zero where nothing more comes.
int signal_pipe[2];

void TellSignal(int signal) {
  const int error_number = errno;
  const char number = static_cast<char>(signal);
  // A pipe that is full has been told often enough.
  if (write(signal_pipe[1], &number, 1) != 1) errno = error_number;
}

// A handler, since OpenBLAS' threads begin before main() and block no signal.
absl::Status CatchSignals() {
  if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0 || fcntl(signal_pipe[0], F_SETFL, 0) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe for signals");
  }
  struct sigaction action = {};
  action.sa_handler = TellSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return absl::OkStatus();
}

// Drains the worker on the first SIGTERM or SIGINT, stops it at once on the next that is not the
// same notice.
class SignalThread {
 public:
  SignalThread(Worker* worker, Clock* clock)
      : thread_([this, worker, clock] {
          absl::Time first = absl::InfiniteFuture();
          while (true) {
            char signal = 0;
            while (read(signal_pipe[0], &signal, 1) < 0 && errno == EINTR) {
            }
            if (signal == 0) return;
            const absl::Time now = clock->Now();
            const bool is_first = first == absl::InfiniteFuture();
            // Ctrl-C twice is meant twice.
            if (!is_first && signal == SIGTERM && now - first < kSameNotice) continue;
            if (is_first) first = now;
            told_ = true;
            Log(LogLevel::kInfo, is_first ? "draining" : "stopping",
                {{"signal", static_cast<int>(signal)}});
            is_first ? worker->RequestDrain() : worker->RequestStop();
          }
        }) {}

  ~SignalThread() {
    TellSignal(0);
    thread_.join();
  }

  // Whether a signal told the worker to end.
  bool told() const { return told_; }

 private:
  std::atomic<bool> told_{false};
  std::thread thread_;
};

// `address` with the port that was taken for a port of 0.
std::string WithPort(const std::string& address, int port) {
  return port == 0 ? "" : absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

absl::Status WriteReadyFile(const Flags& flags, const Worker& worker) {
  nlohmann::json ready;
  ready["worker"] = worker.name();
  ready["metrics"] = WithPort(flags.worker.metrics_address, worker.metrics_port());
  ready["grpc"] = WithPort(flags.worker.grpc_address, worker.grpc_port());
  return WriteFileAtomically(flags.ready_file, ready.dump() + "\n");
}

// The exit status of a worker that ended in good order.
absl::StatusOr<int> RunWorker(const Flags& flags) {
  // What plug-ins print belongs with the log.
  if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return absl::ErrnoToStatus(errno, "cannot join standard output with standard error");
  }
  PLUMBLINE_RETURN_IF_ERROR(CatchSignals());
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Start(flags.worker));
  Log(LogLevel::kInfo, "started",
      {{"version", kVersion},
       {"server", flags.worker.server},
       {"metrics", WithPort(flags.worker.metrics_address, worker->metrics_port())},
       {"grpc", WithPort(flags.worker.grpc_address, worker->grpc_port())},
       {"kernel_identity", flags.worker.kernel_identity.sha256}});
  const SignalThread signals(worker.get(), flags.worker.clock);
  // Ready before it is registered: a coordinator that is away is waited for, however long, and a
  // worker that waits needs no other start.
  const ServiceManager manager = ServiceManager::FromEnvironment();
  manager.Tell(absl::StrCat("READY=1\nSTATUS=waiting for ", flags.worker.server, "\n"));
  PLUMBLINE_RETURN_IF_ERROR(worker->AwaitRegistration());
  // It may have been told to end before it ever was registered.
  if (!flags.ready_file.empty() && !worker->name().empty()) {
    PLUMBLINE_RETURN_IF_ERROR(WriteReadyFile(flags, *worker));
  }
  manager.Tell(absl::StrCat("STATUS=", worker->name(), " of ", flags.worker.server, "\n"));
  PLUMBLINE_RETURN_IF_ERROR(worker->Wait());
  return signals.told() ? flags.preempted_exit_status : 0;
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  if (const std::optional<int> probed = RunProbe(argc, argv)) return *probed;
  Flags flags;
  flags.worker.state_directory = DefaultStateDirectory();
  flags.worker.metrics_address = "127.0.0.1:0";
  flags.worker.grpc_address = "127.0.0.1:0";
  CLI::App app("Does the tasks of a Plumbline coordinator on this machine.", "plumbline-worker");
  AddFlags(&app, &flags);
  app.footer(kFooter);
  try {
    ParseCommandWords(&app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s\n", ParseErrorText(app, error).c_str());
    return kBadUse;
  }
  absl::Status status = Finish(&flags);
  if (status.ok() && flags.check) {
    std::printf("plumbline-worker %s takes these flags\n", kVersion);
    return 0;
  }
  if (status.ok()) {
    const absl::StatusOr<int> ended = RunWorker(flags);
    if (ended.ok()) return *ended;
    status = ended.status();
  }
  std::fprintf(stderr, "plumbline-worker: %s\n", std::string(status.message()).c_str());
  if (GetReason(status) == kInUseReason) return kInUse;
  return absl::IsInvalidArgument(status) ? kBadUse : kFailed;
}

}  // namespace plumbline::worker
