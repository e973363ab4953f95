#include "kernels/numerics/synthetic.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace plumbline {
namespace {

constexpr char kCheckpoint[] = "tests/golden/checkpoint/";

struct StoredTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// A reader of its own: what is tested here should not hang on the one that loads checkpoints.
std::vector<StoredTensor> ReadTensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), sizeof(header_bytes));
  std::vector<StoredTensor> tensors;
  const nlohmann::json header = nlohmann::json::parse(all.substr(8, header_bytes));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    tensors.push_back(
        {name, entry["dtype"], entry["shape"], all.substr(8 + header_bytes + begin, end - begin)});
  }
  return tensors;
}

template <typename Value>
std::string FilledBytes(const std::string& name, uint64_t seed, SyntheticRecipe recipe,
                        size_t bytes) {
  std::vector<Value> values(bytes / sizeof(Value));
  FillSynthetic(name, seed, recipe, 0, absl::MakeSpan(values));
  return std::string(reinterpret_cast<const char*>(values.data()), bytes);
}

using Recipe = SyntheticRecipe (*)(absl::string_view, absl::Span<const int64_t>);

// Every tensor of `file` but the computed filters has the bytes that its name and `seed` give.
int ExpectSynthetic(const std::string& file, const std::string& prefix, uint64_t seed,
                    Recipe recipe_of) {
  int compared = 0;
  for (const StoredTensor& tensor : ReadTensors(absl::StrCat(kCheckpoint, file))) {
    if (absl::EndsWith(tensor.name, "filter")) continue;
    const SyntheticRecipe recipe = recipe_of(tensor.name, tensor.shape);
    const std::string name = prefix + tensor.name;
    const std::string filled = tensor.dtype == "BF16"
                                   ? FilledBytes<bfloat16>(name, seed, recipe, tensor.bytes.size())
                                   : FilledBytes<float>(name, seed, recipe, tensor.bytes.size());
    EXPECT_TRUE(filled == tensor.bytes) << tensor.name << " " << tensor.dtype;
    ++compared;
  }
  return compared;
}

TEST(Synthetic, Fnv1a64HasItsPublishedValues) {
  EXPECT_EQ(Fnv1a64(""), 0xCBF29CE484222325u);
  EXPECT_EQ(Fnv1a64("a"), 0xAF63DC4C8601EC8Cu);
  EXPECT_EQ(Fnv1a64("foobar"), 0x85944171F73967E8u);
}

TEST(Synthetic, TransformerIsTheCheckpoint) {
  int compared = 0;
  for (int shard = 1; shard <= 2; ++shard) {
    compared += ExpectSynthetic(
        absl::StrCat("transformer/diffusion_pytorch_model-0000", shard, "-of-00002.safetensors"),
        "", 1, TransformerRecipe);
  }
  // Two blocks of 12, two refiner blocks of 10, the final norm and 17 boundary parameters.
  EXPECT_EQ(compared, 2 * 12 + 2 * 10 + 1 + 17);
}

TEST(Synthetic, VideoAutoencoderIsTheCheckpoint) {
  EXPECT_GT(ExpectSynthetic("vae/diffusion_pytorch_model.safetensors", "vae.", 0, VideoVaeRecipe),
            0);
}

TEST(Synthetic, AudioAutoencoderIsTheCheckpoint) {
  EXPECT_GT(ExpectSynthetic("audio_vae/diffusion_pytorch_model.safetensors", "audio_vae.", 0,
                            AudioVaeRecipe),
            0);
}

TEST(Synthetic, RangesJoinToTheWhole) {
  const SyntheticRecipe recipe{1.5, 0.25};
  std::vector<float> whole(1001);
  FillSynthetic("some.tensor", 3, recipe, 0, absl::MakeSpan(whole));
  std::vector<float> joined(whole.size());
  FillSynthetic("some.tensor", 3, recipe, 0, absl::MakeSpan(joined).subspan(0, 377));
  FillSynthetic("some.tensor", 3, recipe, 377, absl::MakeSpan(joined).subspan(377));
  EXPECT_EQ(whole, joined);
  std::vector<float> other_seed(whole.size());
  FillSynthetic("some.tensor", 4, recipe, 0, absl::MakeSpan(other_seed));
  EXPECT_NE(whole, other_seed);
}

}  // namespace
}  // namespace plumbline
