#ifndef PLUMBLINE_WORKER_TASK_RUNNER_H_
#define PLUMBLINE_WORKER_TASK_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/clock.h"
#include "kernels/device.h"
#include "kernels/identity/kernel_identity.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "worker/artifacts/input_files.h"
#include "worker/jobs/checkpoint_cache.h"
#include "worker/jobs/job.h"
#include "worker/lease/coordinator.h"
#include "worker/lease/held_task.h"
#include "worker/plugin/plugins.h"
#include "worker/state_directory.h"
#include "worker/steps/blob_cache.h"
#include "worker/worker_metrics.h"

namespace plumbline::worker {

// Does a job; jobs::RunJob, unless a test has another.
using JobFunction =
    std::function<absl::StatusOr<jobs::JobResult>(const v1::JobSpec&, const jobs::JobEnvironment&)>;

// All of it outlives the runner.
struct TaskRunnerOptions {
  Coordinator* coordinator = nullptr;
  Clock* clock = nullptr;
  Device* device = nullptr;
  int threads = 1;
  const Registry* registry = nullptr;
  // Those that `registry` has. May be null: none.
  const Plugins* plugins = nullptr;
  bool takes_uploaded_plugins = false;
  // Called before plug-ins that a task brings are loaded.
  std::function<void()> before_uploaded_plugins;
  // Called after a task failed because what a plug-in did to the device cannot be undone.
  std::function<void()> on_broken_device;
  const KernelIdentity* kernel_identity = nullptr;
  std::map<std::string, std::string> libraries;
  jobs::CheckpointCache* checkpoints = nullptr;
  InputFiles* input_files = nullptr;
  steps::BlobCache* step_cache = nullptr;  // May be null.
  StateDirectory* state = nullptr;
  WorkerMetrics* metrics = nullptr;
  absl::StatusOr<const media::FfmpegLibrary*> ffmpeg =
      absl::UnavailableError("FFmpeg is not in use");
  // Why a task is handed back when it is stopped with kRelease.
  std::function<v1::ReleaseReason()> release_reason;
  uint64_t backoff_seed = 0;
};

// Takes one task from its assignment to its end as far as the coordinator is concerned: its events
// reported, its files stored, and the attempt completed or the task handed back; or all of it
// dropped, where the lease is lost. One thread.
class TaskRunner {
 public:
  TaskRunner(TaskRunnerOptions options, JobFunction job);

  AttemptOutcome Run(HeldTask* task);

 private:
  class Attempt;

  const TaskRunnerOptions options_;
  const JobFunction job_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_TASK_RUNNER_H_
