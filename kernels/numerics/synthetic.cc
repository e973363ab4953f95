#include "kernels/numerics/synthetic.h"

#include <cmath>

#include "absl/strings/match.h"

namespace plumbline {
namespace {

absl::string_view LastComponent(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? name : name.substr(dot + 1);
}

// The scale that gives outputs of a linear or convolution layer the variance of its inputs.
double FanInScale(absl::Span<const int64_t> shape) {
  int64_t fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
  return std::sqrt(3.0 / static_cast<double>(fan_in));
}

class Generator {
 public:
  Generator(absl::string_view name, uint64_t seed, SyntheticRecipe recipe)
      : key_(Fnv1a64(name) ^ (seed * 0xD1342543DE82EF95)),
        scale_(static_cast<float>(recipe.scale)),
        offset_(static_cast<float>(recipe.offset)) {}

  float Value(int64_t index) const {
    uint64_t z = key_ + static_cast<uint64_t>(index + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    const int32_t u = static_cast<int32_t>(z >> 40) - (1 << 23);
    // An offset of zero adds nothing but would turn -0 into 0.
    const float scaled = static_cast<float>(u) * 0x1p-23f * scale_;
    return offset_ == 0 ? scaled : scaled + offset_;
  }

 private:
  uint64_t key_;
  float scale_;
  float offset_;
};

}  // namespace

uint64_t Fnv1a64(absl::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

SyntheticRecipe TransformerRecipe(absl::string_view name, absl::Span<const int64_t> shape) {
  const bool is_bias = LastComponent(name) == "bias";
  if (absl::StrContains(name, "adaln_proj.linear") || absl::StrContains(name, "norm_out.linear"))
    return {is_bias ? 0.1 : 0.5 * FanInScale(shape), 0.0};
  if (is_bias) return {0.05, 0.0};
  if (shape.size() == 1) return {0.25, 1.0};
  return {FanInScale(shape), 0.0};
}

SyntheticRecipe VideoVaeRecipe(absl::string_view name, absl::Span<const int64_t> shape) {
  if (absl::StrContains(name, "register_tokens")) return {0.5, 0.0};
  if (absl::EndsWith(name, "scale1") || absl::EndsWith(name, "scale2")) return {0.2, 0.5};
  if (LastComponent(name) == "bias") return {0.05, 0.0};
  if (shape.size() == 1) return {0.25, 1.0};
  return {FanInScale(shape), 0.0};
}

SyntheticRecipe AudioVaeRecipe(absl::string_view name, absl::Span<const int64_t> shape) {
  const absl::string_view last = LastComponent(name);
  if (name == "decoder.conv_post.weight_g") return {0.0, 0.08};
  if (last == "weight_g") return {0.2, 0.9};
  if (last == "alpha" || last == "beta") return {0.5, 0.0};
  if (last == "bias") return {0.02, 0.0};
  return {FanInScale(shape), 0.0};
}

void FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe, int64_t begin,
                   absl::Span<float> to) {
  const Generator generator(name, seed, recipe);
  const int64_t count = static_cast<int64_t>(to.size());
  for (int64_t i = 0; i < count; ++i) to[i] = generator.Value(begin + i);
}

void FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe, int64_t begin,
                   absl::Span<bfloat16> to) {
  const Generator generator(name, seed, recipe);
  const int64_t count = static_cast<int64_t>(to.size());
  for (int64_t i = 0; i < count; ++i) to[i] = RoundToBf16(generator.Value(begin + i));
}

}  // namespace plumbline
