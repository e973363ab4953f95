#ifndef PLUMBLINE_WORKER_WORKER_METRICS_H_
#define PLUMBLINE_WORKER_WORKER_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/metrics.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/worker.pb.h"

namespace plumbline::worker {

// How an attempt at a task ended.
enum class AttemptOutcome { kSucceeded, kFailed, kCancelled, kReleased, kLeaseLost };

absl::string_view AttemptOutcomeName(AttemptOutcome outcome);  // "succeeded", ...

// What the worker counts, in its metrics. Any thread may call.
class WorkerMetrics {
 public:
  // `metrics` must outlive it.
  explicit WorkerMetrics(Metrics* metrics);
  ~WorkerMetrics();

  // `kind` is the member of JobSpec.kind, e.g. "block_replay".
  void AttemptStarted(const std::string& kind);
  void AttemptEnded(const std::string& kind, AttemptOutcome outcome, absl::Duration duration);
  // A step of a generation is saved, however it came to be.
  void StepDone(v1::StepOrigin origin, absl::Duration duration);
  void SetDeviceMemory(int64_t limit_bytes, int64_t high_water_bytes);
  void SetDeviceUsage(const v1::DeviceUsage& usage);

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_WORKER_METRICS_H_
