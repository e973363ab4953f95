// Synthetic tensors: the same numbers anywhere, from a name and a seed.
//
// Value i (from 1) of tensor NAME under seed s: key = fnv1a64(NAME) xor (s * 0xD1342543DE82EF95),
// z = the finaliser of splitmix64 of (key + i * 0x9E3779B97F4A7C15), u = z >> 40, and
// v = (u - 2^23) * 2^-23 in float32, in [-1, 1); times a float32 scale, plus a float32 offset, then
// the cast.
#ifndef PLUMBLINE_KERNELS_NUMERICS_SYNTHETIC_H_
#define PLUMBLINE_KERNELS_NUMERICS_SYNTHETIC_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {

uint64_t Fnv1a64(absl::string_view text);

struct SyntheticRecipe {
  double scale = 1;
  double offset = 0;
};

// The recipe of a transformer parameter under its diffusers name, e.g.
// "transformer_blocks.0.norm1.weight". `shape` is the parameter's, outermost first.
SyntheticRecipe TransformerRecipe(absl::string_view name, absl::Span<const int64_t> shape);
// Of a parameter of the video autoencoder's decoder. Its tensor is filled under "vae." + name, seed
// 0.
SyntheticRecipe VideoVaeRecipe(absl::string_view name, absl::Span<const int64_t> shape);
// Of a parameter of the audio autoencoder's decoder, its computed filters aside. Its tensor is
// filled under "audio_vae." + name, seed 0.
SyntheticRecipe AudioVaeRecipe(absl::string_view name, absl::Span<const int64_t> shape);

// Values [begin, begin + to.size()) of tensor `name`, counted from 0; ranges of one tensor may be
// filled by several threads.
void FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe, int64_t begin,
                   absl::Span<float> to);
// The same rounded once more, to bfloat16.
void FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe, int64_t begin,
                   absl::Span<bfloat16> to);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_NUMERICS_SYNTHETIC_H_
