#ifndef PLUMBLINE_WORKER_H3_CHECKPOINT_FILES_H_
#define PLUMBLINE_WORKER_H3_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/config.h"

namespace plumbline::h3 {

// How a checkpoint's transformer lies on disk.
enum class CheckpointLayout {
  kReleased,  // Names and shapes of diffusers.
  kNative,    // MiniMax's own: fused, interleaved QKV and swapped FFN halves (stored_tensors.h).
};

// "released", "native".
const char* CheckpointLayoutName(CheckpointLayout layout);

// One file of a checkpoint.
struct CheckpointFile {
  std::string name;        // Relative to the checkpoint, e.g. "transformer/config.json".
  std::string path;        // Where it lies, links followed; empty: it is not there.
  std::string unfollowed;  // The same, links not followed.
};

// The files of one part of a checkpoint. Which layout a transformer has, the tensors' names say,
// not the files' names: one that was copied into the other layout's file names is still what it is.
struct ComponentFiles {
  std::string folder;  // "transformer", or "FL2VA/transformer".
  CheckpointFile config;
  CheckpointFile index;  // `name` empty: there is none.
  // In the order of their names. With an index those that it names; without one every weight file,
  // and those that the numbers in their names say are missing.
  std::vector<CheckpointFile> shards;
};

// Finds the files of DIRECTORY/transformer or DIRECTORY/FL2VA/transformer:
//   diffusion_pytorch_model.safetensors.index.json or model.safetensors.index.json with its shards,
//   or diffusion_pytorch_model.safetensors or model.safetensors alone,
//   or model-NNNNN-of-MMMMM.safetensors, or the same with diffusion_pytorch_model, without an
//   index.
// `directory` was resolved under `roots`; the files may be links, but must lie under `roots` too.
// INVALID_ARGUMENT: there are no weights, or a file lies elsewhere, or an index is none.
absl::StatusOr<ComponentFiles> FindTransformerFiles(const std::string& directory,
                                                    const std::vector<std::string>& roots);

// The same of another part of the checkpoint, DIRECTORY/FOLDER, e.g. "vae".
absl::StatusOr<ComponentFiles> FindComponentFiles(const std::string& directory,
                                                  absl::string_view folder,
                                                  const std::vector<std::string>& roots);

// The configuration in `files`, in diffusers' keys or in MiniMax's own. INVALID_ARGUMENT names the
// file and what is wrong.
absl::StatusOr<TransformerConfig> ReadTransformerConfig(const ComponentFiles& files);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_CHECKPOINT_FILES_H_
