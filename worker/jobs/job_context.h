#ifndef PLUMBLINE_WORKER_JOBS_JOB_CONTEXT_H_
#define PLUMBLINE_WORKER_JOBS_JOB_CONTEXT_H_

#include <functional>

#include "absl/status/status.h"
#include "common/clock.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/event.pb.h"

namespace plumbline::jobs {

// What a job runs on and whom it tells. Owns nothing; all of it outlives the job. The functions
// are called from the thread that runs the job.
struct JobContext {
  Device* device = nullptr;
  const Registry* registry = nullptr;
  Clock* clock = nullptr;
  std::function<void(const v1::NodeEvent&)> on_node;
  std::function<void(const v1::Progress&)> on_progress;
  // Returns when the event is durable: what comes after it was not known before. An error ends the
  // job with it.
  std::function<absl::Status(const v1::RuleFrozenEvent&)> on_rule_frozen;
  // Asked often; an error (CANCELLED, lease lost) ends the job with it. A job in between has
  // written nothing.
  std::function<absl::Status()> check_cancelled;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_JOB_CONTEXT_H_
