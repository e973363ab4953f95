#ifndef PLUMBLINE_WORKER_H3_MODEL_INPUTS_H_
#define PLUMBLINE_WORKER_H3_MODEL_INPUTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "worker/h3/config.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/packed_layout.h"

// What a block and the whole model are run on: stand-ins that are the same everywhere, or tensors
// read from a capture. All values are float32 in the host's memory, batch 1; an executor rounds
// them where its graph wants bfloat16, which changes nothing in a stand-in's rounded ones.

namespace plumbline::h3 {

// Seed of the stand-ins that captures and runs share; and of other data of the same shape, for the
// test that the rows of one batch item do not depend on another's.
inline constexpr uint64_t kStandInSeed = 0;
inline constexpr uint64_t kOtherBatchItemSeed = 1;

struct BlockInputs {
  PackedLayout layout;
  HostTensor input;  // "block.input" (1, rows, hidden), scale 1.5, values rounded to bfloat16.
  HostTensor temb;   // "block.temb" (1, T, time_embed_dim), scale 1.5.
  HostTensor
      upstream;  // "block.upstream", the gradient of the block's output, as `input`, scale 1.
};

struct FullModelInputs {
  PackedLayout layout;
  HostTensor video;  // "input.hidden_states" (1, video rows, video row width), scale 1.5.
  HostTensor audio;  // "input.audio_hidden_states" (1, audio rows, audio channels), scale 1.5.
  // "input.encoder_hidden_states" (1, text rows, text_dim), scale 1.5, values rounded to bfloat16.
  HostTensor text;
  HostTensor
      upstream_video;  // "upstream.video", the gradient of the output of that shape, scale 1.
  HostTensor upstream_audio;  // "upstream.audio", likewise.
};

// Synthetic stand-ins for a complete layout. RESOURCE_EXHAUSTED if the host's memory is too small.
absl::StatusOr<BlockInputs> StandInBlockInputs(const TransformerConfig& config,
                                               const PackedLayout& layout, uint64_t seed);
absl::StatusOr<FullModelInputs> StandInFullModelInputs(const TransformerConfig& config,
                                                       const PackedLayout& layout, uint64_t seed);

// Reads inputs from a capture, which may hold other tensors too: the tensors named above and
// position_ids (F64), token_tags, video_indices, audio_indices, text_indices, timestep_indices
// (I64) and timestep (F32). Float tensors may be F32 or BF16. The upstream gradients are read only
// `with_upstream` and otherwise left null. INVALID_ARGUMENT names every tensor that is missing, or
// has another type or shape than the configuration and the layout give it.
absl::StatusOr<BlockInputs> ReadBlockInputs(const SafetensorsFile& file,
                                            const TransformerConfig& config, bool with_upstream);
absl::StatusOr<FullModelInputs> ReadFullModelInputs(const SafetensorsFile& file,
                                                    const TransformerConfig& config,
                                                    bool with_upstream);

// Whether a capture's tensor of this name is an input of the functions above, and so no tensor to
// be compared.
bool IsBlockInputName(absl::string_view name);
bool IsFullModelInputName(absl::string_view name);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_MODEL_INPUTS_H_
