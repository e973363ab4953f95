#ifndef PLUMBLINE_WORKER_CHECKPOINT_MANIFEST_H_
#define PLUMBLINE_WORKER_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/checkpoint.pb.h"
#include "worker/checkpoint/scan.h"

namespace plumbline::checkpoint {

// What a checkpoint should be; docs/checkpoints.md describes the file.
struct Manifest {
  struct File {
    int64_t size_bytes = 0;
    std::string sha256;
  };
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string sha256;
    double norm = 0;
    std::vector<double> part_norms;
    uint64_t row_sum = 0;
  };

  v1::CheckpointLayout layout = v1::CHECKPOINT_LAYOUT_UNSPECIFIED;
  std::string sha256;                     // Of the transformer's weights.
  std::map<std::string, File> files;      // By path, relative to the checkpoint.
  std::map<std::string, Tensor> tensors;  // As ScannedTensor names them.
};

// The text of a manifest of a scan without findings.
std::string ManifestText(const Scan& scan);

// INVALID_ARGUMENT, naming `where`: no manifest, or one whose digest is not that of its content.
absl::StatusOr<Manifest> ReadManifest(absl::string_view text, absl::string_view where);

// Adds to `scan` what differs from the manifest, and sets the expected digests of files. Files are
// held against it where both have one layout; tensors always. Rows that are all there in another
// order are told from other values.
void JudgeByManifest(const Manifest& manifest, Scan* scan);

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_MANIFEST_H_
