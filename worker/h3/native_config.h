#ifndef PLUMBLINE_WORKER_H3_NATIVE_CONFIG_H_
#define PLUMBLINE_WORKER_H3_NATIVE_CONFIG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/config.h"

namespace plumbline::h3 {

// Whether the text of a transformer/config.json is in MiniMax's own keys, which its native layout
// comes with (`ffn_hidden_size`, `token_refiner_num_layers`, ...).
bool IsNativeConfig(absl::string_view json);

// Reads such a text. Keys that say nothing about the transformer's shape are not read; those that
// are missing have the released model's value, but for the four sizes that every instance has of
// its own: hidden_size, num_layers, num_attention_heads, ffn_hidden_size. Errors as
// ParseTransformerConfig's.
absl::StatusOr<TransformerConfig> ParseNativeConfig(absl::string_view json,
                                                    absl::string_view source);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NATIVE_CONFIG_H_
