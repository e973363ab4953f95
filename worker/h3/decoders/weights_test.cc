#include "worker/h3/decoders/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/h3/decoders/parameters.h"

namespace plumbline::h3 {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& Roots() {
  static const auto* const roots = new std::vector<std::string>{"/"};
  return *roots;
}

// The bundled decoders were filled with synthetic values; so each parameter has the very bytes.
TEST(DecoderWeightsTest, SyntheticWeightsAreTheBundledOnes) {
  const auto file =
      OpenDecoders(std::string(std::filesystem::absolute("tests/golden/checkpoint")), Roots());
  const auto synthetic = OpenDecoders("synthetic:tiny:7", Roots());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(synthetic.ok()) << synthetic.status();
  for (const auto& [a, b] : {std::make_pair(file->video, synthetic->video),
                             std::make_pair(file->audio, synthetic->audio)}) {
    ASSERT_EQ(a->parameters().size(), b->parameters().size());
    for (const ParameterSpec& parameter : a->parameters()) {
      const auto from_file = a->Get(parameter.name);
      const auto made = b->Get(parameter.name);
      ASSERT_TRUE(from_file.ok()) << from_file.status();
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(from_file->Bytes(), made->Bytes()) << parameter.name;
    }
    EXPECT_EQ(a->Description(), "released layout, 1 file");
    EXPECT_EQ(b->Description(), "synthetic");
    EXPECT_EQ(a->Get("decoder.nothing").status().code(), absl::StatusCode::kNotFound);
  }
  // The bundled audio decoder says null for its statistics, and so does the built-in one.
  EXPECT_EQ(CanonicalConfigJson(file->audio_config), CanonicalConfigJson(TinyAudioDecoder()));
  EXPECT_EQ(CanonicalConfigJson(file->video_config), CanonicalConfigJson(TinyVideoDecoder()));
  EXPECT_EQ(*file->video->Digest(), *synthetic->video->Digest());
  EXPECT_EQ(*file->audio->Digest(), *synthetic->audio->Digest());
  EXPECT_THAT(*file->Identity(), HasSubstr(absl::StrCat("sha256:", *file->audio->Digest())));
  EXPECT_EQ(*synthetic->Identity(), *OpenDecoders("synthetic:tiny", Roots())->Identity());
  EXPECT_NE(*synthetic->Identity(), *OpenDecoders("synthetic:released", Roots())->Identity());
}

// The filter's constants against its definition: a sinc of cutoff 0.25 in a Kaiser window, its sum
// one. PyTorch's window is float32.
TEST(DecoderWeightsTest, TheFilterIsAKaiserWindowedSinc) {
  const double pi = std::acos(-1.0);
  const double attenuation = 2.285 * (6 - 1) * pi * (4 * 0.3) + 7.95;
  ASSERT_GT(attenuation, 50);
  const double beta = 0.1102 * (attenuation - 8.7);
  double taps[12], sum = 0;
  for (int i = 0; i < 12; ++i) {
    const double time = i - 5.5;
    const double ratio = 2.0 * i / 11 - 1;
    const double window =
        std::cyl_bessel_i(0, beta * std::sqrt(1 - ratio * ratio)) / std::cyl_bessel_i(0, beta);
    const double x = 2 * 0.25 * time;
    taps[i] = 2 * 0.25 * window * std::sin(pi * x) / (pi * x);
    sum += taps[i];
  }
  const auto audio = MakeSyntheticDecoder(TinyAudioDecoder());
  const auto view = audio->Get("decoder.activation_post.upsample.filter");
  ASSERT_TRUE(view.ok()) << view.status();
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(view->tensor.Row<float>(0)[i], taps[i] / sum, 2e-7) << i;
  }
}

class BrokenDecodersTest : public testing::Test {
 protected:
  BrokenDecodersTest() : directory_(absl::StrCat(testing::TempDir(), "/broken_", getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::copy("tests/golden/checkpoint", directory_,
                          std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
    }
  }

  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    const std::string path = absl::StrCat(directory_, "/", file);
    const std::string text = *ReadFile(path, 1 << 20);
    ASSERT_THAT(text, HasSubstr(from));
    std::ofstream(path) << absl::StrReplaceAll(text, {{from, to}});
  }
  absl::Status Open() { return OpenDecoders(directory_, Roots()).status(); }

  const std::string directory_;
};

TEST_F(BrokenDecodersTest, SaysWhichFileLacks) {
  std::filesystem::remove_all(directory_ + "/audio_vae");
  EXPECT_EQ(Open().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Open().message(), HasSubstr("audio_vae/config.json"));
  std::filesystem::remove(directory_ + "/vae/diffusion_pytorch_model.safetensors");
  EXPECT_THAT(Open().message(), HasSubstr("vae: holds no weights"));
}

TEST_F(BrokenDecodersTest, SaysWhichTensorDoesNotFit) {
  Replace("vae/config.json", "\"decoder_num_layers\": 2", "\"decoder_num_layers\": 3");
  EXPECT_THAT(Open().message(), HasSubstr("decoder.transformer_blocks.2.norm1.weight"));
}

TEST_F(BrokenDecodersTest, SaysWhichKeyIsWrong) {
  Replace("audio_vae/config.json", "\"decoder_dim\": 128", "\"decoder_dim\": 100");
  EXPECT_THAT(Open().message(), HasSubstr("decoder_dim: 100 cannot be halved"));
}

TEST_F(BrokenDecodersTest, RefusesAnOddRotation) {
  Replace("vae/config.json", "\"decoder_rope_dim_ratio\": 0.75", "\"decoder_rope_dim_ratio\": 0.7");
  EXPECT_THAT(Open().message(), HasSubstr("decoder_rope_dim_ratio"));
}

TEST_F(BrokenDecodersTest, RefusesOneStatisticAlone) {
  Replace("audio_vae/config.json", "\"latents_mean\": null", "\"latents_mean\": [0]");
  EXPECT_THAT(Open().message(), HasSubstr("latents_mean"));
}

}  // namespace
}  // namespace plumbline::h3
