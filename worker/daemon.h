#ifndef PLUMBLINE_WORKER_DAEMON_H_
#define PLUMBLINE_WORKER_DAEMON_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/access/client_channel.h"
#include "common/clock.h"
#include "kernels/identity/kernel_identity.h"
#include "worker/host.h"

namespace plumbline::worker {

struct WorkerOptions {
  // The coordinator: "HOST:PORT" or "unix:PATH".
  std::string server;
  // What the worker keeps; made if it is not there. No two workers share one.
  std::string state_directory;
  // Folders that checkpoints and `worker:` files lie in. Empty: none but synthetic checkpoints.
  std::vector<std::string> checkpoint_roots;
  // What the coordinator is shown.
  ClientFiles credentials;
  DeviceOptions device;
  // No other worker of this machine may have the same GPU while this one lives, or, where `device`
  // is the CPU, any of these: devices that a scheduler gave it, by names that all workers have.
  std::vector<std::string> claimed_devices;
  // That does not hold.
  bool shares_device = false;
  // Folders whose *.so are loaded as plug-ins when the worker starts.
  std::vector<std::string> plugin_folders;
  // Whether plug-ins that jobs bring are loaded.
  bool takes_uploaded_plugins = false;
  // A call of a plug-in that takes longer has hung.
  absl::Duration plugin_call_limit = absl::Minutes(10);
  // With what the process ends once a plug-in broke it; negative: with the signal that it got.
  int plugin_crash_exit_status = -1;
  // Of the program that this is part of.
  KernelIdentity kernel_identity;
  // "HOST:PORT" to serve /metrics, /healthz and /readyz on. Empty: not served.
  std::string metrics_address;
  // "HOST:PORT" to serve grpc.health.v1 and reflection on. Empty: not served.
  std::string grpc_address;
  // Whether FFmpeg's libraries are used where the machine has them. Without them no MP4 is read or
  // made.
  bool use_ffmpeg = true;
  // For placement and for people. What is claimed is added as `device`, unless that is set.
  std::map<std::string, std::string> labels;
  // Copied into this process's attempts, `device` likewise.
  std::map<std::string, std::string> attempt_labels;
  // How long a task that runs may go on after RequestDrain().
  absl::Duration grace = absl::Seconds(20);
  Clock* clock = SteadyClock();
};

// A worker: registers with a coordinator and does its tasks, one after another, until it is to end.
// Does all of its work on threads of its own; any thread may call.
class Worker {
 public:
  // Returns at once, before it is registered; a coordinator that is away is waited for.
  // INVALID_ARGUMENT or FAILED_PRECONDITION says what of the options is wrong (with reason IN_USE:
  // another process has the device or the state folder); UNAVAILABLE, that an address cannot be
  // listened on.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(WorkerOptions options);
  virtual ~Worker() = default;  // Stops.

  // Takes no more tasks; what runs may be finished within the grace time and is handed back after
  // it. Returns at once.
  virtual void RequestDrain() = 0;
  // The same without grace.
  virtual void RequestStop() = 0;
  // Blocks until it has ended: after a drain, its own or an operator's, it has signed off. An error
  // is the coordinator's refusal to register it.
  virtual absl::Status Wait() = 0;

  // Blocks until it is registered. An error is the coordinator's refusal.
  virtual absl::Status AwaitRegistration() = 0;
  // Whether a plug-in broke the process, which is about to end: the worker's thread stands still
  // for ever, so that the worker must not be destroyed.
  virtual bool is_broken() const = 0;
  // "workers/{worker}"; empty before it is registered.
  virtual std::string name() const = 0;
  // Ports in use; 0: none.
  virtual int metrics_port() const = 0;
  virtual int grpc_port() const = 0;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_DAEMON_H_
