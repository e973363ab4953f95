#ifndef PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_
#define PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/h3/weight_source.h"

namespace plumbline::jobs {

// Keeps the checkpoint that was opened last, and with it its digest, which takes minutes to compute
// at the released size, for the tasks that follow. One thread.
class CheckpointCache {
 public:
  // Folders that checkpoints lie in.
  explicit CheckpointCache(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  const std::vector<std::string>& roots() const { return roots_; }

  // As h3::OpenCheckpoint. Opens anew when a file of the checkpoint was replaced or changed.
  absl::StatusOr<std::shared_ptr<const h3::WeightSource>> Open(const std::string& spec);

 private:
  const std::vector<std::string> roots_;
  std::string spec_;
  std::string fingerprint_;
  std::shared_ptr<const h3::WeightSource> source_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_
