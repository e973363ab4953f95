#ifndef PLUMBLINE_WORKER_H3_FILE_WEIGHTS_H_
#define PLUMBLINE_WORKER_H3_FILE_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/h3/weight_source.h"

namespace plumbline::h3 {

// Opens the transformer of a checkpoint in the released layout or in MiniMax's native one, found as
// FindTransformerFiles finds it. Whatever the layout, parameters have diffusers' names and rows.
// Files are mapped; no value is read.
//
// `directory` is a path that was resolved under `roots`; the files inside may be links, but must
// lie under `roots` too. INVALID_ARGUMENT, naming the file: what is missing or malformed, and the
// tensors that the configuration asks for but are missing, that it does not know, or that have
// another shape or type.
absl::StatusOr<std::shared_ptr<const WeightSource>> OpenFileWeights(
    const std::string& directory, const std::vector<std::string>& roots);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_FILE_WEIGHTS_H_
