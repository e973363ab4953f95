// Checkpoints for tests: the bundled one rewritten in MiniMax's layout, and damaged in the ways
// that checkpoints are. Written from the description of the layouts, not from the code that reads
// them.
#ifndef PLUMBLINE_WORKER_CHECKPOINT_TESTING_CHECKPOINT_WRITER_H_
#define PLUMBLINE_WORKER_CHECKPOINT_TESTING_CHECKPOINT_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/safetensors_writer.h"

namespace plumbline::h3::testing {

// A tensor with its bytes.
struct OwnedTensor {
  TensorSpec spec;
  std::string bytes;
};
using OwnedTensors = std::vector<OwnedTensor>;

// Heads of the bundled checkpoint, and channels of one.
inline constexpr int kBundledHeads = 2;
inline constexpr int kBundledHeadDim = 128;

// The tensors of tests/golden/checkpoint/transformer. These abort where a test's files are amiss.
OwnedTensors BundledTensors();
std::string BundledConfig();
// The same configuration in MiniMax's keys.
std::string NativeConfig();

OwnedTensor* FindTensor(absl::string_view name, OwnedTensors* tensors);

// Released names and rows to native ones.
OwnedTensors ToNative(const OwnedTensors& released);
// Released names, but rows as a loader leaves them that cuts the native layout's fused QKV into
// thirds, or takes its (gate; value) halves as they are; of every block and refiner block.
void LeaveQkvInterleaved(OwnedTensors* tensors);
void SwapFfnHalves(OwnedTensors* tensors);

// Writes `tensors` to FOLDER/transformer as `shards` files, with an index where there are several
// and `index` is set. `stem` is "diffusion_pytorch_model" or "model".
void WriteCheckpoint(const std::string& folder, const OwnedTensors& tensors, int shards,
                     absl::string_view stem, const std::string& config, bool index = true);

}  // namespace plumbline::h3::testing

#endif  // PLUMBLINE_WORKER_CHECKPOINT_TESTING_CHECKPOINT_WRITER_H_
