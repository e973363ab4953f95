#ifndef PLUMBLINE_WORKER_H3_CONDITIONING_H_
#define PLUMBLINE_WORKER_H3_CONDITIONING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "worker/h3/config.h"
#include "worker/h3/generation_contract.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/layout.h"

namespace plumbline::h3 {

// What the provider's text and image encoders made of a prompt and its keyframes.
struct Conditioning {
  HostTensor prompt_embeds;              // (1, text rows, text_dim), float32.
  std::vector<int64_t> text_token_tags;  // A text row's: 1, or 0 in a keyframe's vision block.
  bool first_keyframe = false;
  bool last_keyframe = false;
  // (channels, latent height, latent width), float32, one a keyframe: the first frame's first.
  std::vector<HostTensor> condition_latents;

  // The part "conditioning" of a run's identity, hex: the SHA-256 of `canonical_json`, which has
  // the anchors, and type, shape and SHA-256 of each tensor as it was in the file. So a copy of the
  // file with other padding or other metadata is the same conditioning.
  std::string sha256;
  std::string canonical_json;
};

// Reads the tensors `prompt_embeds` (1, text rows, text_dim) and `condition_latents.N` (1,
// channels, 1, height, width), F32 or BF16, `text_token_tags` (text rows) or (1, text rows), I64,
// and the metadata `anchors`: "first", "last", "first,last", or "" or none of it for no keyframes.
// The latents' sides must be the contract's. INVALID_ARGUMENT names everything that is missing,
// extra, of another type or shape, or not finite.
absl::StatusOr<Conditioning> ReadConditioning(const SafetensorsFile& file,
                                              const TransformerConfig& config,
                                              const GenerationContract& contract);

// The sequence that the transformer runs on. INVALID_ARGUMENT, naming `where`, if it has more than
// kMaxRows rows.
absl::StatusOr<LayoutSpec> GenerationLayout(const GenerationContract& contract,
                                            const Conditioning& conditioning,
                                            absl::string_view where);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_CONDITIONING_H_
