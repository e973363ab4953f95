#ifndef PLUMBLINE_WORKER_DRIFT_CAPTURE_H_
#define PLUMBLINE_WORKER_DRIFT_CAPTURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/tensor_store.h"

// Files that stand for a side of a block replay: tensors `node.NAME`, `node.NAME.grad`,
// `leaf.PARAMETER`, `leaf.input`, `leaf.temb`, shapes as in BlockEntry::shape, batch 1.

namespace plumbline::drift {

// Copies what `entries` name from a capture into `store`, under the executor's names. The names
// must be exactly the entries' (where they have no gradients, a capture may); those of inputs may
// be there too. BF16, F32 and F64 are taken. INVALID_ARGUMENT on `field` names every tensor that
// is missing, extra, or of another type or shape, in one error.
absl::Status LoadCapture(absl::string_view field, const SafetensorsFile& file,
                         const BlockEntries& entries, const BlockEntries& entries_with_gradients,
                         TensorStore* store);

// Writes the entries of an execution as a capture, tensors in their own types.
absl::Status WriteCapture(const std::string& path, const BlockEntries& entries,
                          const TensorStore& store, Device& device);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_CAPTURE_H_
