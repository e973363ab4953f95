// Both decoders on a GPU: the golden and the candidate against what the model's own code decoded in
// float32; the provider, which works under float16 autocast, against the golden.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_case.h"
#include "worker/h3/decoders/decoders_fixture.h"

namespace plumbline::h3 {
namespace {

// The test's device, which lives as long as the program; a CPU where there is none, so that the
// fixture can be made.
std::shared_ptr<Device> TestDevice() {
  Device* const gpu = CudaDeviceForTest();
  if (gpu == nullptr) return *MakeCpuDevice(1, int64_t{1} << 30);
  return std::shared_ptr<Device>(gpu, [](Device*) {});
}

class DecodersCuda : public DecodersTest {
 protected:
  DecodersCuda() : DecodersTest(TestDevice()) {}

  void SetUp() override {
    if (device_->kind() != DeviceKind::kCuda) GTEST_SKIP() << "no CUDA device";
  }

  std::vector<float> Video(const std::string& composition) {
    auto decoded = DecodeVideo(composition, {true, 48, 16}, kCaptured,
                               Floats(*SafetensorsFile::Open(kVideoCapture), "z"));
    EXPECT_TRUE(decoded.ok()) << composition << ": " << decoded.status();
    return decoded.ok() ? *std::move(decoded) : std::vector<float>();
  }

  std::vector<float> Audio(const std::string& composition) {
    const DecoderComposition resolved = Resolve(composition);
    GraphCalls calls(audio_graph_, resolved.audio, *weights_.audio, registry_, *device_,
                     [] { return absl::OkStatus(); });
    auto samples = DecodeAudio(weights_.audio_config, 2, 9,
                               Floats(*SafetensorsFile::Open(kAudioCapture), "z"), &calls);
    EXPECT_TRUE(samples.ok()) << composition << ": " << samples.status();
    return samples.ok() ? *std::move(samples) : std::vector<float>();
  }

  double VideoError(const std::vector<float>& decoded) {
    return RelativeL2(Floats(*SafetensorsFile::Open(kVideoCapture), "decoded_tiled"), decoded);
  }
  double AudioError(const std::vector<float>& samples) {
    return RelativeL2(Floats(*SafetensorsFile::Open(kAudioCapture), "decoded"), samples);
  }
};

TEST_F(DecodersCuda, Float32IsTheCapture) {
  for (const char* composition : {"golden", "candidate", "candidate+golden:attention,conv_pre"}) {
    const double video = VideoError(Video(composition));
    const double audio = AudioError(Audio(composition));
    std::printf("%s on a GPU: relative L2 of the video %.3g, of the audio %.3g\n", composition,
                video, audio);
    EXPECT_LE(video, 1e-5) << composition;
    EXPECT_LE(audio, 1e-5) << composition;
  }
  const VideoLatentShape first = {24, 7, 4, 5};
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
  const auto untiled =
      DecodeVideo("golden", {false}, first, Cut(Floats(capture, "z"), kCaptured, first));
  ASSERT_TRUE(untiled.ok()) << untiled.status();
  EXPECT_LE(RelativeL2(Floats(capture, "decoded_untiled_7"), *untiled), 1e-5);
}

// float16 has 11 bits: 5e-4 a rounding, of which there are a few in a row. The sound is float32.
TEST_F(DecodersCuda, TheProviderWorksInFloat16) {
  const double video = VideoError(Video("provider"));
  const double audio = AudioError(Audio("provider"));
  std::printf("provider on a GPU: relative L2 of the video %.3g, of the audio %.3g\n", video,
              audio);
  EXPECT_LE(video, 3e-3);
  EXPECT_GE(video, 1e-4) << "nothing was rounded to float16";
  EXPECT_LE(audio, 1e-5);
}

// One composition of: golden, provider, candidate.
class DecodersCudaEach : public DecodersCuda, public ::testing::WithParamInterface<const char*> {
 protected:
  // A clip of one released tile through two of the released decoder's 36 blocks, decoded twice.
  std::vector<float> ReleasedTile(const std::string& composition) {
    VideoDecoderConfig config = ReleasedVideoDecoder();
    config.num_layers = 2;
    const auto weights = MakeSyntheticDecoder(config);
    const Graph graph = BuildVideoDecoderGraph(config);
    const VideoLatentShape shape = {24, 7, 16, 16};
    std::vector<float> latents(static_cast<size_t>(shape.NumElements()));
    for (size_t i = 0; i < latents.size(); ++i) {
      latents[i] = std::sin(0.37f * static_cast<float>(i));
    }
    const auto resolved =
        ResolveComposition(*ParseComposition(composition), graph, registry_, DeviceKind::kCuda);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    if (!resolved.ok()) return {};
    GraphCalls calls(graph, *resolved, *weights, registry_, *device_,
                     [] { return absl::OkStatus(); });
    auto decoder =
        VideoDecoder::Create(config, {}, BlendRounding::kFloat32, shape, latents, &calls);
    EXPECT_TRUE(decoder.ok()) << decoder.status();
    if (!decoder.ok()) return {};
    auto first = decoder->DecodeClip(0);
    const auto start = std::chrono::steady_clock::now();
    auto again = decoder->DecodeClip(0);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_TRUE(first.ok() && again.ok()) << first.status() << "; " << again.status();
    if (!first.ok() || !again.ok()) return {};
    EXPECT_EQ(*first, *again) << composition;
    std::printf("released tile, 2 of 36 blocks, %s: %.1f ms\n", composition.c_str(), took.count());
    return *std::move(first);
  }
};

TEST_P(DecodersCudaEach, Repeats) {
  EXPECT_EQ(Video(GetParam()), Video(GetParam()));
  EXPECT_EQ(Audio(GetParam()), Audio(GetParam()));
}

TEST_P(DecodersCudaEach, ReleasedTileIsTheGoldens) {
  const std::vector<float> golden = ReleasedTile("golden");
  ASSERT_FALSE(golden.empty());
  const double error = RelativeL2(golden, ReleasedTile(GetParam()));
  std::printf("relative L2 to golden %.3g\n", error);
  EXPECT_LE(error, GetParam() == std::string("provider") ? 3e-3 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Compositions, DecodersCudaEach,
                         ::testing::Values("golden", "provider", "candidate"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace plumbline::h3
