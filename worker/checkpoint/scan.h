#ifndef PLUMBLINE_WORKER_CHECKPOINT_SCAN_H_
#define PLUMBLINE_WORKER_CHECKPOINT_SCAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "proto/plumbline/v1/checkpoint.pb.h"
#include "worker/checkpoint/parameter_scan.h"
#include "worker/h3/config.h"
#include "worker/h3/weight_source.h"

// Everything that one pass over a checkpoint's files finds: of every file its size and SHA-256, of
// every tensor its figures, and what is wrong with either by itself. Each byte is read once, in
// pieces; tensors are never held whole, but for the half of a native feed-forward weight that comes
// ahead of its place (148 MiB in the released model).

namespace plumbline::checkpoint {

// A tensor of the transformer in diffusers' name and rows, whatever the layout; or "vae.NAME",
// "audio_vae.NAME" of the decoders, as they are stored.
struct ScannedTensor {
  std::string name;
  std::string file;  // Relative to the checkpoint.
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  Figures figures;
};

struct Scan {
  v1::CheckpointLayout layout = v1::CHECKPOINT_LAYOUT_UNSPECIFIED;
  std::optional<h3::TransformerConfig> config;  // None where it cannot be read.
  // WeightSource::Digest(), empty where a parameter is missing or not as it should be.
  std::string sha256;
  std::vector<v1::CheckpointReport::File> files;  // By path.
  std::vector<ScannedTensor> tensors;             // By name.
  std::vector<v1::CheckpointFinding> findings;    // In the order of files.
  int64_t bytes_read = 0;
};

struct ScanOptions {
  // Files that are read at once, at most; each takes a few MiB, of the native layout 160.
  int threads = 1;
  // Called from the calling thread, some times a second.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
  std::function<absl::Status()> check_cancelled;
};

// Scans the checkpoint at `directory`, which was resolved under `roots`. INVALID_ARGUMENT where
// there is nothing to scan: no weights at all; what check_cancelled returns. All else that is wrong
// is a finding.
absl::StatusOr<Scan> ScanCheckpoint(const std::string& directory,
                                    const std::vector<std::string>& roots,
                                    const ScanOptions& options);

// The same figures of weights that are computed, one parameter in memory at a time.
absl::StatusOr<Scan> ScanComputed(const h3::WeightSource& weights, const ScanOptions& options);

// In how many parts Figures::part_norms measures a transformer's parameter: a query's, key's or
// value's weight by heads, a feed-forward's first weight by halves.
int64_t PartsOf(absl::string_view parameter, const h3::TransformerConfig& config);

v1::CheckpointFinding Finding(v1::CheckpointFinding::Kind kind, std::string file,
                              std::string tensor, std::string message);

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_SCAN_H_
