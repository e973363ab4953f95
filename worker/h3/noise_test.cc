#include "worker/h3/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/noise_cpu.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr LayoutSpec kSpec = {7, 2, 6, 8, 5, true, true};

absl::Span<const uint8_t> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

// A noise file in memory, to be changed before it is written.
struct NoiseFile {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<float>> values;

  // Each draw of a run in order, from one generator.
  NoiseFile() {
    TorchCpuGenerator generator(42);
    for (const NoiseDraw& draw : NoiseDraws(TinyConfig(), kSpec)) {
      specs.push_back({draw.name, DType::kF32, draw.shape});
      values.emplace_back(NumElements(draw.shape));
      EXPECT_TRUE(generator.Draw(absl::MakeSpan(values.back())).ok());
    }
  }

  absl::StatusOr<std::unique_ptr<NoiseSource>> Open() const {
    const std::string path = ::testing::TempDir() + "/noise.safetensors";
    std::vector<TensorView> tensors;
    for (size_t i = 0; i < specs.size(); ++i) tensors.push_back({specs[i], BytesOf(values[i])});
    const absl::Status written = WriteSafetensors(path, tensors);
    EXPECT_TRUE(written.ok()) << written;
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return MakeFileNoise(*std::move(file), TinyConfig(), kSpec);
  }
};

std::vector<HostTensor> Conditions(int count) {
  std::vector<HostTensor> conditions;
  for (int i = 0; i < count; ++i) {
    conditions.push_back(*AllocateHostTensor(DType::kF32, 24, 6, 8));
    std::memset(conditions.back().tensor.data, 0, conditions.back().tensor.NumBytes());
  }
  return conditions;
}

TEST(NoiseDrawsTest, KeyframesThenVideoThenAudio) {
  const std::vector<NoiseDraw> draws = NoiseDraws(TinyConfig(), kSpec);
  ASSERT_EQ(draws.size(), 4);
  EXPECT_EQ(draws[0].name, "noise.keyframe.0");
  EXPECT_EQ(draws[1].name, "noise.keyframe.1");
  EXPECT_THAT(draws[1].shape, ElementsAre(1, 24, 1, 6, 8));
  EXPECT_EQ(draws[2].name, "noise.video");
  EXPECT_THAT(draws[2].shape, ElementsAre(1, 24, 2, 6, 8));
  EXPECT_EQ(draws[3].name, "noise.audio");
  EXPECT_THAT(draws[3].shape, ElementsAre(10, 32));
}

// The same rows from a generator and from a file of its draws, though under another identity.
TEST(NoiseTest, FileStandsForAGenerator) {
  const NoiseFile noise;
  const auto file = noise.Open();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->Identity(), StartsWith("file:"));
  const auto generator = MakeGeneratorNoise({Rng::Kind::kTorchCpu, 0}, 42);
  EXPECT_EQ(generator->Identity(), "torch-cpu");
  const std::vector<HostTensor> conditions = Conditions(2);
  const auto drawn = DrawInitialRows(TinyConfig(), kSpec, conditions, generator.get());
  const auto read = DrawInitialRows(TinyConfig(), kSpec, conditions, file->get());
  ASSERT_TRUE(drawn.ok() && read.ok());
  EXPECT_EQ(drawn->video.Bytes(), read->video.Bytes());
  EXPECT_EQ(drawn->audio.Bytes(), read->audio.Bytes());
  ASSERT_EQ(drawn->noise.size(), 4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(drawn->noise[i].sha256, Sha256Hex(BytesOf(noise.values[i])));
    EXPECT_EQ(read->noise[i].sha256, drawn->noise[i].sha256);
  }
}

TEST(NoiseTest, IdentityOfAFileFollowsItsValues) {
  NoiseFile noise;
  const std::string identity = (*noise.Open())->Identity();
  EXPECT_EQ((*noise.Open())->Identity(), identity);
  noise.values[2][5] += 1;
  EXPECT_NE((*noise.Open())->Identity(), identity);
}

TEST(NoiseTest, FileFaultsAreNamed) {
  auto message_after = [](void (*change)(NoiseFile*)) {
    NoiseFile noise;
    change(&noise);
    const absl::Status status = noise.Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message_after([](NoiseFile* n) { n->specs[2].name = "noise.vidoe"; }),
              ::testing::AllOf(HasSubstr("noise.video: is missing; accepted: F32 (1, 24, 2, 6, 8)"),
                               HasSubstr("\"noise.vidoe\": is no draw of this run")));
  EXPECT_THAT(message_after([](NoiseFile* n) {
                n->specs[3].shape = {5, 64};
              }),
              HasSubstr("noise.audio: is F32 (5, 64); accepted: F32 (10, 32)"));
  EXPECT_THAT(message_after([](NoiseFile* n) { n->specs[3].dtype = DType::kI32; }),
              HasSubstr("noise.audio: is I32"));
  EXPECT_THAT(
      message_after([](NoiseFile* n) { n->values[0][7] = std::numeric_limits<float>::infinity(); }),
      HasSubstr("noise.keyframe.0: holds a value that is not finite"));
}

TEST(NoiseTest, ConditionsMustFitTheLayout) {
  const auto source = MakeGeneratorNoise({}, 42);
  EXPECT_THAT(
      std::string(
          DrawInitialRows(TinyConfig(), kSpec, Conditions(1), source.get()).status().message()),
      HasSubstr("condition_latents: there are 1 of them; accepted: 2"));
  std::vector<HostTensor> conditions = Conditions(2);
  conditions[1] = *AllocateHostTensor(DType::kF32, 24, 8, 6);
  EXPECT_THAT(
      std::string(
          DrawInitialRows(TinyConfig(), kSpec, conditions, source.get()).status().message()),
      HasSubstr("condition_latents.1: is (24, 8, 6); accepted: (24, 6, 8)"));
}

}  // namespace
}  // namespace plumbline::h3
