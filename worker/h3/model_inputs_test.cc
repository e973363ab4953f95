#include "worker/h3/model_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kCapturedInputs[] = "tests/golden/transformer_inputs.safetensors";

// The layout of the captures: 7,2,6,8,5,first.
PackedLayout CapturedLayout() {
  return *BuildPackedLayout({7, 2, 6, 8, 5, true, false}, kReplayVideoTimestep,
                            kReplayAudioTimestep);
}

template <typename T>
absl::Span<const uint8_t> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

void ExpectSameLayout(const PackedLayout& a, const PackedLayout& b) {
  EXPECT_EQ(BytesOf(a.position_ids), BytesOf(b.position_ids));
  EXPECT_EQ(a.token_tags, b.token_tags);
  EXPECT_EQ(a.video_indices, b.video_indices);
  EXPECT_EQ(a.audio_indices, b.audio_indices);
  EXPECT_EQ(a.text_indices, b.text_indices);
  EXPECT_EQ(a.timestep, b.timestep);
  EXPECT_EQ(a.timestep_indices, b.timestep_indices);
  EXPECT_EQ(a.adaln_indices, b.adaln_indices);
  EXPECT_EQ(a.keyframe_rows, b.keyframe_rows);
}

TEST(FullModelInputsTest, StandInsAreThoseOfTheCaptures) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(kCapturedInputs);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<FullModelInputs> stand_in =
      StandInFullModelInputs(TinyConfig(), CapturedLayout(), kStandInSeed);
  ASSERT_TRUE(stand_in.ok()) << stand_in.status();
  const absl::StatusOr<FullModelInputs> read = ReadFullModelInputs(*file, TinyConfig(), true);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSameLayout(read->layout, stand_in->layout);
  const std::pair<const char*, HostTensor FullModelInputs::*> tensors[] = {
      {"input.hidden_states", &FullModelInputs::video},
      {"input.audio_hidden_states", &FullModelInputs::audio},
      {"input.encoder_hidden_states", &FullModelInputs::text},
      {"upstream.video", &FullModelInputs::upstream_video},
      {"upstream.audio", &FullModelInputs::upstream_audio}};
  for (const auto& [name, member] : tensors) {
    EXPECT_EQ(((*stand_in).*member).Bytes(), *file->Bytes(name)) << name;
    EXPECT_EQ(((*read).*member).Bytes(), *file->Bytes(name)) << name;
    EXPECT_EQ(((*read).*member).tensor.rows, file->Find(name)->shape[1]) << name;
    EXPECT_TRUE(IsFullModelInputName(name));
    EXPECT_FALSE(IsBlockInputName(name));
  }
  for (const TensorInfo& tensor : file->tensors()) {
    EXPECT_TRUE(IsFullModelInputName(tensor.name)) << tensor.name;
  }
  EXPECT_FALSE(IsFullModelInputName("output.video"));
}

TEST(FullModelInputsTest, NamesWhatDoesNotFitTheConfiguration) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(kCapturedInputs);
  ASSERT_TRUE(file.ok()) << file.status();
  TransformerConfig config = TinyConfig();
  config.text_dim = 96;
  const absl::Status status = ReadFullModelInputs(*file, config, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("transformer_inputs.safetensors: input.encoder_hidden_states: is F32 "
                              "(1, 7, 64); accepted: F32 or BF16 (1, 7, 96)"),
                    Not(HasSubstr("upstream"))));
}

// SHA-256 of the float32 values, computed by a Python script from the specification.
TEST(BlockInputsTest, StandInsAreTheSpecifiedOnes) {
  struct Case {
    uint64_t seed;
    const char* input;
    const char* temb;
    const char* upstream;
  };
  const Case cases[] = {
      {kStandInSeed, "84991226e8134a1437bf3c2191ccf3454ccdce011db5cb823aa8f958bb2ace02",
       "c765729b7dc761151bc35622a99bee759fa7255235aa4de499e57d4da7e1aabb",
       "846dd1197ba4625e55c336f2b5fcd2e6a29202332b4d49c4aa393fffd01e9b89"},
      {kOtherBatchItemSeed, "e732f1bc9b5543939556746747f35225a37258e3e2094e5fdb0dbbc3427e561e",
       "688500d1832d6a941fb7576b11116ffa958211b3102b4442380483b0b617f3f5",
       "2121bd21dfb48763f9247bd9d81482ad14049270c007ea31561b77c3744f2f0b"}};
  for (const Case& c : cases) {
    const absl::StatusOr<BlockInputs> inputs =
        StandInBlockInputs(TinyConfig(), CapturedLayout(), c.seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    EXPECT_EQ(Sha256Hex(inputs->input.Bytes()), c.input);
    EXPECT_EQ(Sha256Hex(inputs->temb.Bytes()), c.temb);
    EXPECT_EQ(Sha256Hex(inputs->upstream.Bytes()), c.upstream);
    EXPECT_EQ(inputs->input.tensor.rows, 53);
    EXPECT_EQ(inputs->input.tensor.width, 128);
    EXPECT_EQ(inputs->temb.tensor.rows, 3);
    EXPECT_EQ(inputs->temb.tensor.width, 64);
  }
}

// Writes the stand-ins of the tiny block as a capture, after a change.
class BlockCaptureTest : public ::testing::Test {
 protected:
  BlockCaptureTest()
      : stand_in_(*StandInBlockInputs(TinyConfig(), CapturedLayout(), kStandInSeed)) {
    const PackedLayout& layout = stand_in_.layout;
    auto add = [this](const char* name, DType dtype, std::vector<int64_t> shape,
                      absl::Span<const uint8_t> bytes) {
      tensors_[name] = {{name, dtype, std::move(shape)}, bytes};
    };
    add("block.input", DType::kF32, {1, 53, 128}, stand_in_.input.Bytes());
    add("block.temb", DType::kF32, {3, 64}, stand_in_.temb.Bytes());
    add("block.upstream", DType::kF32, {1, 53, 128}, stand_in_.upstream.Bytes());
    add("position_ids", DType::kF64, {53, 3}, BytesOf(layout.position_ids));
    add("token_tags", DType::kI64, {53}, BytesOf(layout.token_tags));
    add("video_indices", DType::kI64, {36}, BytesOf(layout.video_indices));
    add("audio_indices", DType::kI64, {10}, BytesOf(layout.audio_indices));
    add("text_indices", DType::kI64, {7}, BytesOf(layout.text_indices));
    add("timestep", DType::kF32, {3}, BytesOf(layout.timestep));
    add("timestep_indices", DType::kI64, {53}, BytesOf(layout.timestep_indices));
  }

  absl::StatusOr<BlockInputs> WriteAndRead(bool with_upstream) {
    const std::string path = ::testing::TempDir() + "/capture.safetensors";
    std::vector<TensorView> tensors;
    for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
    const absl::Status written = WriteSafetensors(path, tensors);
    EXPECT_TRUE(written.ok()) << written;
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return ReadBlockInputs(*file, TinyConfig(), with_upstream);
  }

  std::vector<FieldViolation> Violations(bool with_upstream = true) {
    return GetFieldViolations(WriteAndRead(with_upstream).status());
  }

  const BlockInputs stand_in_;
  std::map<std::string, TensorView> tensors_;
};

TEST_F(BlockCaptureTest, ReadsWhatWasWritten) {
  tensors_["node.norm1"] = {{"node.norm1", DType::kF32, {1}}, stand_in_.temb.Bytes().first(4)};
  const absl::StatusOr<BlockInputs> read = WriteAndRead(true);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSameLayout(read->layout, stand_in_.layout);
  EXPECT_FALSE(read->layout.spec.has_value());
  EXPECT_EQ(read->input.Bytes(), stand_in_.input.Bytes());
  EXPECT_EQ(read->temb.Bytes(), stand_in_.temb.Bytes());
  EXPECT_EQ(read->upstream.Bytes(), stand_in_.upstream.Bytes());
  for (const auto& [name, tensor] : tensors_) {
    EXPECT_EQ(IsBlockInputName(name), name != "node.norm1") << name;
  }
}

TEST_F(BlockCaptureTest, WidensBfloat16) {
  std::vector<bfloat16> narrow(53 * 128);
  RoundToBf16({static_cast<const float*>(stand_in_.input.tensor.data), narrow.size()},
              narrow.data());
  tensors_["block.input"].spec.dtype = DType::kBF16;
  tensors_["block.input"].bytes = BytesOf(narrow);
  const absl::StatusOr<BlockInputs> read = WriteAndRead(true);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->input.tensor.dtype, DType::kF32);
  EXPECT_EQ(read->input.Bytes(), stand_in_.input.Bytes());
}

TEST_F(BlockCaptureTest, UpstreamIsNeededForABackwardOnly) {
  tensors_.erase("block.upstream");
  EXPECT_THAT(Violations(/*with_upstream=*/true), SizeIs(1));
  const absl::StatusOr<BlockInputs> read = WriteAndRead(/*with_upstream=*/false);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->upstream.tensor.IsNull());
}

TEST_F(BlockCaptureTest, EveryMissingTensorIsNamed) {
  const std::map<std::string, TensorView> all = tensors_;
  for (const auto& [name, tensor] : all) {
    tensors_ = all;
    tensors_.erase(name);
    bool named = false;
    for (const FieldViolation& violation : Violations()) {
      named |= violation.field == ::testing::TempDir() + "/capture.safetensors: " + name &&
               violation.description.find("is missing") == 0;
    }
    EXPECT_TRUE(named) << name;
  }
  tensors_ = {{"node.norm1", {{"node.norm1", DType::kF32, {1}}, stand_in_.temb.Bytes().first(4)}}};
  EXPECT_THAT(Violations(), SizeIs(10));
}

TEST_F(BlockCaptureTest, EveryWrongShapeAndTypeIsNamed) {
  const std::map<std::string, TensorView> all = tensors_;
  for (const auto& [name, tensor] : all) {
    tensors_ = all;
    tensors_[name].spec.shape.push_back(1);
    EXPECT_THAT(WriteAndRead(true).status().message(),
                AllOf(HasSubstr(": " + name + ": is "), HasSubstr("accepted: ")))
        << name;
    tensors_ = all;
    tensors_[name].spec.dtype = DType::kU8;
    tensors_[name].spec.shape = {static_cast<int64_t>(tensor.bytes.size())};
    EXPECT_THAT(WriteAndRead(true).status().message(), HasSubstr(": " + name + ": is U8 ")) << name;
  }
}

TEST_F(BlockCaptureTest, LayoutsThatContradictThemselvesAreRefused) {
  std::vector<int64_t> tags = stand_in_.layout.token_tags;
  tags[4] = 7;
  tensors_["token_tags"].bytes = BytesOf(tags);
  EXPECT_THAT(WriteAndRead(true).status().message(), HasSubstr("token_tags: row 4 has tag 7"));
}

}  // namespace
}  // namespace plumbline::h3
