#ifndef PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_H_
#define PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/h3/weight_source.h"

namespace plumbline::checkpoint {

// Writes a transformer to FOLDER/transformer in the released layout: the configuration, `shards`
// files of about equal size that hold the parameters in the model's order, and their index. A
// thread a shard, which holds one tensor at a time. Returns the bytes of all tensors. `folder` is
// made if it is not there. ALREADY_EXISTS if it holds a transformer; INVALID_ARGUMENT for more
// shards than there are parameters. What was written before an error stays; the configuration comes
// last, so that no part of a checkpoint is taken for one.
absl::StatusOr<int64_t> WriteCheckpoint(const h3::WeightSource& weights, int shards,
                                        const std::string& folder);

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_H_
