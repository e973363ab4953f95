#ifndef PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_
#define PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/h3/decoders/weights.h"
#include "worker/h3/weight_source.h"

namespace plumbline::jobs {

// Keeps the checkpoint that was opened last, and with it its digests, which take minutes to compute
// at the released size, for the tasks that follow. One thread.
class CheckpointCache {
 public:
  // Folders that checkpoints lie in.
  explicit CheckpointCache(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  const std::vector<std::string>& roots() const { return roots_; }

  // As h3::OpenCheckpoint. Opens anew when a file of the checkpoint was replaced or changed.
  absl::StatusOr<std::shared_ptr<const h3::WeightSource>> Open(const std::string& spec);
  // As h3::OpenDecoders, likewise.
  absl::StatusOr<h3::DecoderWeights> OpenDecoders(const std::string& spec);

 private:
  // What was opened, and of what files; without a fingerprint it is opened anew.
  struct Key {
    std::string spec;
    std::string fingerprint;

    bool operator==(const Key& other) const {
      return spec == other.spec && fingerprint == other.fingerprint;
    }
  };

  Key KeyOf(const std::string& spec) const;

  const std::vector<std::string> roots_;
  Key source_key_;
  std::shared_ptr<const h3::WeightSource> source_;
  Key decoders_key_;
  std::optional<h3::DecoderWeights> decoders_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_CHECKPOINT_CACHE_H_
