// Executions that advance together, so that every weight is loaded once for all of them and no
// tensor has to be kept longer than a block.
#ifndef PLUMBLINE_WORKER_JOBS_LOCKSTEP_H_
#define PLUMBLINE_WORKER_JOBS_LOCKSTEP_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/executor.h"
#include "worker/h3/graph.h"

namespace plumbline::jobs {

// What takes part in a lockstep. Segments come as in h3::Executor: forward from the first to the
// last, then backward from the last to the first.
class LockstepSide {
 public:
  virtual ~LockstepSide() = default;
  virtual absl::Status Forward(int segment) = 0;
  virtual absl::Status Backward(int segment) = 0;
};

// An executor as a side.
class ExecutorSide : public LockstepSide {
 public:
  explicit ExecutorSide(std::unique_ptr<h3::Executor> executor) : executor_(std::move(executor)) {}

  absl::Status Forward(int segment) override { return executor_->Forward(segment); }
  absl::Status Backward(int segment) override { return executor_->Backward(segment); }
  const h3::Executor& executor() const { return *executor_; }

 private:
  const std::unique_ptr<h3::Executor> executor_;
};

// Runs `sides` in their order, segment by segment. `weights` are what their executors read: each is
// loaded before a segment, and the next segment's prefetched meanwhile. `after_segment` is called
// when all sides have run a segment, once forward and once backward. The first error ends it.
absl::Status RunLockstep(const h3::Graph& graph, const std::vector<h3::DeviceWeights*>& weights,
                         const std::vector<LockstepSide*>& sides,
                         const std::function<absl::Status()>& after_segment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_LOCKSTEP_H_
