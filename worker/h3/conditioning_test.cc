#include "worker/h3/conditioning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GenerationContract Contract() {
  return *ParseGenerationContract(
      R"({"seeds": [42], "num_frames": 5, "height": 96, "width": 128, "num_inference_steps": 6,
          "num_audio_latents": 5})",
      "c");
}

// A conditioning file in memory, to be changed before it is written: 3 text rows and two keyframes
// of the contract's 6 x 8 latents.
struct File {
  struct Entry {
    TensorSpec spec;
    std::vector<uint8_t> bytes;
  };
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata = {{"anchors", "first,last"}};

  File() {
    Add("prompt_embeds", DType::kF32, {1, 3, 64}, std::vector<float>(3 * 64, 0.5f));
    Add("text_token_tags", DType::kI64, {3}, std::vector<int64_t>{1, 0, 1});
    Add("condition_latents.0", DType::kF32, {1, 24, 1, 6, 8}, std::vector<float>(1152, 1.0f));
    Add("condition_latents.1", DType::kF32, {1, 24, 1, 6, 8}, std::vector<float>(1152, 2.0f));
  }

  template <typename T>
  void Add(const std::string& name, DType dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    const auto* data = reinterpret_cast<const uint8_t*>(values.data());
    Entry entry = {{name, dtype, std::move(shape)}, {data, data + values.size() * sizeof(T)}};
    for (Entry& other : entries) {
      if (other.spec.name != name) continue;
      other = std::move(entry);
      return;
    }
    entries.push_back(std::move(entry));
  }

  void Remove(const std::string& name) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].spec.name == name) entries.erase(entries.begin() + i--);
    }
  }

  absl::StatusOr<Conditioning> Read() const {
    const std::string path = ::testing::TempDir() + "/conditioning.safetensors";
    std::vector<TensorView> tensors;
    for (const Entry& entry : entries) tensors.push_back({entry.spec, entry.bytes});
    const absl::Status written = WriteSafetensors(path, tensors, metadata);
    EXPECT_TRUE(written.ok()) << written;
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return ReadConditioning(*file, TinyConfig(), Contract());
  }
};

TEST(ConditioningTest, ReadsEverything) {
  const absl::StatusOr<Conditioning> conditioning = File().Read();
  ASSERT_TRUE(conditioning.ok()) << conditioning.status();
  EXPECT_EQ(conditioning->prompt_embeds.tensor.rows, 3);
  EXPECT_EQ(conditioning->prompt_embeds.tensor.width, 64);
  EXPECT_EQ(conditioning->prompt_embeds.tensor.Row<float>(2)[63], 0.5f);
  EXPECT_THAT(conditioning->text_token_tags, ElementsAre(1, 0, 1));
  EXPECT_TRUE(conditioning->first_keyframe && conditioning->last_keyframe);
  ASSERT_EQ(conditioning->condition_latents.size(), 2);
  EXPECT_EQ(conditioning->condition_latents[1].tensor.batch, 24);
  EXPECT_EQ(conditioning->condition_latents[1].tensor.rows, 6);
  EXPECT_EQ(conditioning->condition_latents[1].tensor.width, 8);
  EXPECT_EQ(conditioning->condition_latents[1].tensor.Row<float>(5, 23)[7], 2.0f);
  EXPECT_EQ(conditioning->sha256, Sha256Hex(conditioning->canonical_json));

  const absl::StatusOr<LayoutSpec> spec = GenerationLayout(Contract(), *conditioning, "c");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(FormatLayout(*spec), "3,2,6,8,5,first+last");
  EXPECT_TRUE(BuildPackedLayout(*spec, 0, 0, conditioning->text_token_tags).ok());
}

TEST(ConditioningTest, WidensBfloat16AndTakesBatchedTags) {
  File file;
  file.Add("prompt_embeds", DType::kBF16, {1, 3, 64}, std::vector<uint16_t>(3 * 64, 0xBFC0));
  file.Add("text_token_tags", DType::kI64, {1, 3}, std::vector<int64_t>{1, 1, 1});
  const absl::StatusOr<Conditioning> conditioning = file.Read();
  ASSERT_TRUE(conditioning.ok()) << conditioning.status();
  EXPECT_EQ(conditioning->prompt_embeds.tensor.Row<float>(1)[7], -1.5f);
  EXPECT_THAT(conditioning->text_token_tags, ElementsAre(1, 1, 1));
}

TEST(ConditioningTest, AnchorsSayWhichKeyframesThereAre) {
  File file;
  file.Remove("condition_latents.1");
  file.metadata["anchors"] = "last";
  const absl::StatusOr<Conditioning> last = file.Read();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_FALSE(last->first_keyframe);
  EXPECT_TRUE(last->last_keyframe);
  file.metadata["anchors"] = "first";
  EXPECT_NE(file.Read()->sha256, last->sha256);

  file.Remove("condition_latents.0");
  file.metadata.clear();
  const absl::StatusOr<Conditioning> none = file.Read();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->condition_latents, ::testing::IsEmpty());
  EXPECT_EQ(GenerationLayout(Contract(), *none, "c")->Keyframes(), 0);
}

TEST(ConditioningTest, IdentityIsTheContent) {
  const std::string sha256 = File().Read()->sha256;
  File file;
  file.metadata["made-by"] = "someone";
  EXPECT_EQ(file.Read()->sha256, sha256);
  file.entries[2].bytes[100] ^= 1;
  EXPECT_NE(file.Read()->sha256, sha256);
}

TEST(ConditioningTest, NamesWhatIsWrong) {
  auto message_after = [](const std::function<void(File*)>& change) {
    File file;
    change(&file);
    const absl::Status status = file.Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message_after([](File* f) { f->Remove("prompt_embeds"); }),
              HasSubstr("prompt_embeds: is missing; accepted: F32 or BF16 (1, any, 64)"));
  EXPECT_THAT(message_after([](File* f) {
                f->Add("prompt_embeds", DType::kF32, {1, 3, 32}, std::vector<float>(96));
              }),
              HasSubstr("prompt_embeds: is F32 (1, 3, 32); accepted: F32 or BF16 (1, any, 64)"));
  EXPECT_THAT(message_after([](File* f) {
                f->Add("prompt_embeds", DType::kF32, {1, 0, 64}, std::vector<float>());
              }),
              HasSubstr("prompt_embeds: is F32 (1, 0, 64)"));
  EXPECT_THAT(message_after([](File* f) {
                f->Add("text_token_tags", DType::kI64, {2}, std::vector<int64_t>{1, 1});
              }),
              HasSubstr("text_token_tags: is I64 (2); accepted: I64 (3)"));
  EXPECT_THAT(message_after([](File* f) {
                f->Add("text_token_tags", DType::kI32, {3}, std::vector<int32_t>{1, 1, 1});
              }),
              HasSubstr("text_token_tags: is I32 (3)"));
  EXPECT_THAT(message_after([](File* f) {
                f->Add("text_token_tags", DType::kI64, {3}, std::vector<int64_t>{1, 2, 1});
              }),
              HasSubstr("text_token_tags: row 1 has tag 2; accepted: 1 text, 0"));
  EXPECT_THAT(
      message_after([](File* f) {
        f->Add("condition_latents.1", DType::kF32, {1, 24, 1, 8, 6}, std::vector<float>(1152));
      }),
      HasSubstr("condition_latents.1: is F32 (1, 24, 1, 8, 6); accepted: F32 or BF16 (1, "
                "24, 1, 6, 8)"));
  EXPECT_THAT(message_after([](File* f) {
                std::vector<float> values(1152);
                values[17] = std::numeric_limits<float>::quiet_NaN();
                f->Add("condition_latents.0", DType::kF32, {1, 24, 1, 6, 8}, values);
              }),
              HasSubstr("condition_latents.0: value 17 is not finite"));
  EXPECT_THAT(message_after([](File* f) { f->metadata["anchors"] = "last,first"; }),
              HasSubstr("__metadata__.anchors: unknown keyframes \"last,first\"; accepted: first"));
  EXPECT_THAT(message_after([](File* f) { f->metadata["anchors"] = "first"; }),
              HasSubstr("\"condition_latents.1\": is no tensor of this conditioning"));
  EXPECT_THAT(message_after([](File* f) {
                f->Remove("condition_latents.0");
                f->Add("promptembeds", DType::kU8, {1}, std::vector<uint8_t>{1});
              }),
              AllOf(HasSubstr("condition_latents.0: is missing"),
                    HasSubstr("\"promptembeds\": is no tensor of this conditioning")));
}

TEST(ConditioningTest, RefusesALayoutThatIsTooLong) {
  GenerationContract contract = Contract();
  contract.height = 8192;
  contract.width = 8192;
  contract.num_frames = 345;
  EXPECT_THAT(
      std::string(GenerationLayout(contract, *File().Read(), "contract").status().message()),
      HasSubstr("contract: "));
}

}  // namespace
}  // namespace plumbline::h3
