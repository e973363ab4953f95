// A whole generation captured from diffusers on a CPU, replayed through noise, layout and sampler
// from its velocities: tests/golden/generation_fp32_cpu.safetensors. All of it is bit for bit: the
// pipeline's arithmetic between two evaluations is float32 sums, products and quotients alone.
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/safetensors.h"
#include "worker/h3/noise.h"
#include "worker/h3/packed_layout.h"
#include "worker/h3/sampler.h"

namespace plumbline::h3 {
namespace {

constexpr LayoutSpec kSpec = {7, 2, 6, 8, 5, true, false};
constexpr uint64_t kSeed = 42;
constexpr int64_t kGridPoints = 6;

class GenerationReplayTest : public ::testing::Test {
 protected:
  GenerationReplayTest()
      : file_(SafetensorsFile::Open("tests/golden/generation_fp32_cpu.safetensors")) {}

  template <typename T>
  std::vector<T> Captured(const std::string& name) {
    const absl::StatusOr<absl::Span<const uint8_t>> bytes = file_->Bytes(name);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    std::vector<T> values(bytes.ok() ? bytes->size() / sizeof(T) : 0);
    if (!values.empty()) std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }

  // Compares bytes and counts, so that a -0 is seen.
  template <typename T>
  void ExpectSameBits(const std::string& name, absl::Span<const T> values) {
    const std::vector<T> captured = Captured<T>(name);
    ASSERT_EQ(values.size(), captured.size()) << name;
    int differ = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::memcmp(&values[i], &captured[i], sizeof(T)) == 0) continue;
      if (differ++ == 0) {
        ADD_FAILURE() << name << ": value " << i << " is " << std::hexfloat << values[i]
                      << ", captured " << captured[i];
      }
    }
    EXPECT_EQ(differ, 0) << name << ": of " << values.size();
  }

  static absl::Span<float> Floats(const HostTensor& tensor) {
    return {static_cast<float*>(tensor.tensor.data),
            static_cast<size_t>(tensor.tensor.NumElements())};
  }

  absl::StatusOr<InitialRows> Draw(uint64_t seed) {
    const HostTensor condition = *AllocateHostTensor(DType::kF32, 24, 6, 8);
    const std::vector<float> latents = Captured<float>("condition_latents");
    EXPECT_EQ(latents.size(), Floats(condition).size());
    std::memcpy(condition.tensor.data, latents.data(), condition.tensor.NumBytes());
    const auto source = MakeGeneratorNoise({Rng::Kind::kTorchCpu, 0}, seed);
    return DrawInitialRows(TinyConfig(), kSpec, {condition}, source.get());
  }

  absl::StatusOr<SafetensorsFile> file_;
};

TEST_F(GenerationReplayTest, EveryStepBitForBit) {
  ASSERT_TRUE(file_.ok()) << file_.status();
  const absl::StatusOr<InitialRows> rows = Draw(kSeed);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const absl::Span<float> video = Floats(rows->video);
  const absl::Span<float> audio = Floats(rows->audio);
  const absl::StatusOr<Sampler> sampler =
      Sampler::Create("contract", kGridPoints, kReleasedVideoShift, kReleasedAudioShift);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  ASSERT_EQ(sampler->Steps(), kGridPoints - 1);
  PackedLayout layout = *BuildPackedLayout(kSpec, 0, 0);

  for (int64_t step = 0; step < sampler->Steps(); ++step) {
    ExpectSameBits<float>(absl::StrCat("rows.", step), video);
    ExpectSameBits<float>(absl::StrCat("audio.", step), audio);
    ASSERT_TRUE(sampler->SetStep(step, &layout).ok());
    ExpectSameBits<float>(absl::StrCat("timestep.", step), layout.timestep);
    ExpectSameBits<int64_t>(absl::StrCat("timestep_indices.", step), layout.timestep_indices);
    const absl::Status advanced =
        sampler->Advance(step, layout, Captured<float>(absl::StrCat("velocity.video.", step)),
                         Captured<float>(absl::StrCat("velocity.audio.", step)), video, audio);
    ASSERT_TRUE(advanced.ok()) << advanced;
  }
  ExpectSameBits<float>(absl::StrCat("rows.", sampler->Steps()), video);
  ExpectSameBits<float>(absl::StrCat("audio.", sampler->Steps()), audio);
}

TEST_F(GenerationReplayTest, AnotherSeedIsAnotherNoise) {
  ASSERT_TRUE(file_.ok()) << file_.status();
  const absl::StatusOr<InitialRows> rows = Draw(kSeed);
  const absl::StatusOr<InitialRows> other = Draw(kSeed + 1);
  ASSERT_TRUE(rows.ok() && other.ok());
  for (size_t i = 0; i < rows->noise.size(); ++i) {
    EXPECT_NE(rows->noise[i].sha256, other->noise[i].sha256) << rows->noise[i].draw.name;
  }
}

}  // namespace
}  // namespace plumbline::h3
