#ifndef PLUMBLINE_WORKER_H3_CHECKPOINT_H_
#define PLUMBLINE_WORKER_H3_CHECKPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/weight_source.h"

namespace plumbline::h3 {

// Opens what a request calls a checkpoint:
//   DIRECTORY             files in the released layout (file_weights.h);
//   synthetic:released    computed weights of the released size,
//   synthetic:tiny        of the bundled checkpoint's size,
//   synthetic:CONFIG.json of the configuration in that file;
// each synthetic one with an optional ":SEED", 0 to 2^64 - 1, default 1. With seed 1
// "synthetic:tiny" equals the bundled checkpoint's bytes. Paths are resolved under `roots` and
// never leave them. Every error but RESOURCE_EXHAUSTED is INVALID_ARGUMENT and begins with
// "checkpoint: ".
absl::StatusOr<std::shared_ptr<const WeightSource>> OpenCheckpoint(
    absl::string_view spec, const std::vector<std::string>& roots);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_CHECKPOINT_H_
