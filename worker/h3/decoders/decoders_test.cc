// Both decoders against what the model's own code decoded, in every implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "worker/h3/decoders/audio_decoder.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graph_calls.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/decoders/video_decoder.h"
#include "worker/h3/decoders/weights.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMemoryBytes = int64_t{1} << 30;

std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
  const absl::StatusOr<absl::Span<const uint8_t>> bytes = file.Bytes(name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto* values = reinterpret_cast<const float*>(bytes->data());
  return {values, values + bytes->size() / sizeof(float)};
}

double RelativeL2(const std::vector<float>& reference, const std::vector<float>& x) {
  EXPECT_EQ(reference.size(), x.size());
  if (reference.size() != x.size()) return 1e30;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (static_cast<double>(reference[i]) - x[i]) * (reference[i] - x[i]);
    norm += static_cast<double>(reference[i]) * reference[i];
  }
  return std::sqrt(difference / norm);
}

class DecodersTest : public testing::Test {
 protected:
  DecodersTest() {
    device_ = *MakeCpuDevice(/*threads=*/2, kMemoryBytes);
    auto opened =
        OpenDecoders(std::string(std::filesystem::absolute("tests/golden/checkpoint")), {"/"});
    EXPECT_TRUE(opened.ok()) << opened.status();
    weights_ = *std::move(opened);
    video_graph_ = BuildVideoDecoderGraph(weights_.video_config);
    audio_graph_ = BuildAudioDecoderGraph(weights_.audio_config);
  }

  DecoderComposition Resolve(const std::string& text) {
    auto resolved = ResolveDecoders(*ParseComposition(text), video_graph_, audio_graph_, registry_,
                                    device_->kind());
    EXPECT_TRUE(resolved.ok()) << text << ": " << resolved.status();
    return *std::move(resolved);
  }

  // All frames of latents (24, frames, height, width), in the capture's order (3, frames, ...).
  absl::StatusOr<std::vector<float>> DecodeVideo(const std::string& composition,
                                                 const TilingOptions& tiling,
                                                 const VideoLatentShape& shape,
                                                 const std::vector<float>& latents,
                                                 Device* device = nullptr) {
    if (device == nullptr) device = device_.get();
    const DecoderComposition resolved = Resolve(composition);
    GraphCalls calls(video_graph_, resolved.video, *weights_.video, registry_, *device,
                     [] { return absl::OkStatus(); });
    PLUMBLINE_ASSIGN_OR_RETURN(VideoDecoder decoder,
                               VideoDecoder::Create(weights_.video_config, tiling, resolved.blend,
                                                    shape, latents, &calls));
    const int64_t pixels = decoder.height() * decoder.width();
    ClipJoiner joiner(decoder.plan(), 3, pixels, resolved.blend);
    std::vector<float> frames;
    for (int64_t clip = 0; clip < decoder.plan().clips; ++clip) {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> raw, decoder.DecodeClip(clip));
      const std::vector<float> made = joiner.Add(raw);
      EXPECT_EQ(static_cast<int64_t>(made.size()), decoder.plan().FramesOf(clip) * 3 * pixels);
      frames.insert(frames.end(), made.begin(), made.end());
    }
    const int64_t count = decoder.plan().frames;
    EXPECT_EQ(static_cast<int64_t>(frames.size()), count * 3 * pixels);
    std::vector<float> planes(frames.size());
    for (int64_t frame = 0; frame < count; ++frame) {
      for (int64_t channel = 0; channel < 3; ++channel) {
        std::copy_n(frames.begin() + (frame * 3 + channel) * pixels, pixels,
                    planes.begin() + (channel * count + frame) * pixels);
      }
    }
    return planes;
  }

  const Registry registry_ = MakeBuiltinRegistry();
  std::unique_ptr<Device> device_;
  DecoderWeights weights_;
  Graph video_graph_;
  Graph audio_graph_;
};

// The first `frames` latent frames, lines and columns of (24, ...) latents.
std::vector<float> Cut(const std::vector<float>& latents, const VideoLatentShape& from,
                       const VideoLatentShape& to) {
  std::vector<float> cut;
  for (int64_t c = 0; c < to.channels; ++c) {
    for (int64_t f = 0; f < to.frames; ++f) {
      for (int64_t y = 0; y < to.height; ++y) {
        for (int64_t x = 0; x < to.width; ++x) {
          const int64_t line = (c * from.frames + f) * from.height + y;
          cut.push_back(latents[static_cast<size_t>(line * from.width + x)]);
        }
      }
    }
  }
  return cut;
}

constexpr VideoLatentShape kCaptured = {24, 12, 4, 5};

class VideoCaptureTest : public DecodersTest, public testing::WithParamInterface<const char*> {
 protected:
  // The golden is as near as float32 storage lets it be; float32 arithmetic a little further.
  double Limit() const { return 1e-5; }
};

INSTANTIATE_TEST_SUITE_P(Implementations, VideoCaptureTest,
                         testing::Values("golden", "provider", "candidate",
                                         "candidate+golden:attention,conv_pre+provider:gemms"));

TEST_P(VideoCaptureTest, TiledVideo) {
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/video_vae_io.safetensors");
  const TilingOptions tiling = {true, 48, 16};
  const auto decoded = DecodeVideo(GetParam(), tiling, kCaptured, Floats(capture, "z"));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const double error = RelativeL2(Floats(capture, "decoded_tiled"), *decoded);
  std::printf("decoded_tiled %s: relative L2 %.3g\n", GetParam(), error);
  EXPECT_LE(error, Limit());
}

TEST_P(VideoCaptureTest, UntiledVideo) {
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/video_vae_io.safetensors");
  VideoLatentShape first = kCaptured;
  first.frames = 7;
  const auto decoded =
      DecodeVideo(GetParam(), {false}, first, Cut(Floats(capture, "z"), kCaptured, first));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const double error = RelativeL2(Floats(capture, "decoded_untiled_7"), *decoded);
  std::printf("decoded_untiled_7 %s: relative L2 %.3g\n", GetParam(), error);
  EXPECT_LE(error, Limit());
}

TEST_P(VideoCaptureTest, OneTile) {
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/video_vae_io.safetensors");
  const VideoLatentShape tile = {24, 7, 3, 3};
  const DecoderComposition resolved = Resolve(GetParam());
  GraphCalls calls(video_graph_, resolved.video, *weights_.video, registry_, *device_,
                   [] { return absl::OkStatus(); });
  auto decoder = VideoDecoder::Create(weights_.video_config, {}, resolved.blend, tile,
                                      Cut(Floats(capture, "z"), kCaptured, tile), &calls);
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  const auto clip = decoder->DecodeClip(0);
  ASSERT_TRUE(clip.ok()) << clip.status();
  const double error = RelativeL2(Floats(capture, "decoder_tile_7x3x3"), *clip);
  std::printf("decoder_tile_7x3x3 %s: relative L2 %.3g\n", GetParam(), error);
  EXPECT_LE(error, Limit());
}

TEST_P(VideoCaptureTest, Audio) {
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/audio_vae_io.safetensors");
  const DecoderComposition resolved = Resolve(GetParam());
  GraphCalls calls(audio_graph_, resolved.audio, *weights_.audio, registry_, *device_,
                   [] { return absl::OkStatus(); });
  const auto samples = DecodeAudio(weights_.audio_config, 2, 9, Floats(capture, "z"), &calls);
  ASSERT_TRUE(samples.ok()) << samples.status();
  const double error = RelativeL2(Floats(capture, "decoded"), *samples);
  std::printf("audio decoded %s: relative L2 %.3g\n", GetParam(), error);
  EXPECT_LE(error, Limit());
}

// The same bytes on one thread as on two, and with weights that are loaded segment by segment.
TEST_F(DecodersTest, ThreadsAndMemoryChangeNothing) {
  const VideoLatentShape shape = {24, 4, 3, 4};
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/video_vae_io.safetensors");
  const std::vector<float> latents = Cut(Floats(capture, "z"), kCaptured, shape);
  const TilingOptions tiling = {true, 32, 16};
  const std::unique_ptr<Device> narrow = *MakeCpuDevice(/*threads=*/1, int64_t{1} << 30);
  for (const char* composition : {"golden", "provider", "candidate"}) {
    const auto two = DecodeVideo(composition, tiling, shape, latents);
    const auto one = DecodeVideo(composition, tiling, shape, latents, narrow.get());
    ASSERT_TRUE(two.ok()) << two.status();
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(*two, *one) << composition;
  }
}

class PreSink : public TapSink {
 public:
  explicit PreSink(Device* device) : device_(*device) {}
  bool Wants(absl::string_view name, TapKind kind) const override {
    return kind == TapKind::kForward && name == "conv_pre";
  }
  absl::Status OnTensor(const Tap& tap) override {
    values.resize(static_cast<size_t>(tap.tensor.NumElements()));
    return device_.CopyToHost(tap.tensor, values.data());
  }
  std::vector<float> values;

 private:
  Device& device_;
};

TEST_F(DecodersTest, AudioBeforeItsFirstStage) {
  const SafetensorsFile capture = *SafetensorsFile::Open("tests/golden/audio_vae_io.safetensors");
  const std::vector<float> z = Floats(capture, "z");
  const DecoderComposition resolved = Resolve("golden");
  DeviceWeights weights(weights_.audio.get(), device_.get());
  PreSink sink(device_.get());
  PlanOptions options;
  options.rows.audio_latents = 9;
  options.batch = 2;
  auto executor = Executor::Create(audio_graph_, resolved.audio, registry_, weights, *device_,
                                   &sink, std::move(options));
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::vector<float> rows(z.size());
  for (int64_t item = 0; item < 2; ++item) {
    for (int64_t c = 0; c < 32; ++c) {
      for (int64_t t = 0; t < 9; ++t) rows[(item * 9 + t) * 32 + c] = z[(item * 32 + c) * 9 + t];
    }
  }
  ASSERT_TRUE(
      (*executor)->SetInput("latents", Tensor::Dense(rows.data(), DType::kF32, 2, 9, 32)).ok());
  ASSERT_TRUE((*executor)->Run().ok());
  std::vector<float> channels(sink.values.size());
  for (int64_t item = 0; item < 2; ++item) {
    for (int64_t t = 0; t < 9; ++t) {
      for (int64_t c = 0; c < 128; ++c)
        channels[(item * 128 + c) * 9 + t] = sink.values[(item * 9 + t) * 128 + c];
    }
  }
  EXPECT_LE(RelativeL2(Floats(capture, "conv_pre"), channels), 1e-5);
}

TEST_F(DecodersTest, ACompositionMayNameNodesOfEitherDecoder) {
  const DecoderComposition resolved = Resolve("golden+candidate:attention,conv_pre");
  for (const OperationRegistration* node : resolved.audio.nodes) {
    EXPECT_EQ(node->implementation, node->op == OpKind::kConv1d && node == resolved.audio.nodes[1]
                                        ? "candidate"
                                        : "golden");
  }
  const auto unknown = ResolveDecoders(*ParseComposition("golden+candidate:convpre"), video_graph_,
                                       audio_graph_, registry_, DeviceKind::kCpu);
  EXPECT_THAT(unknown.status().message(), HasSubstr("there is no node \"convpre\""));
}

TEST_F(DecodersTest, TooFewLatentsAreRefused) {
  for (int64_t frames : {1, 2}) {
    const VideoLatentShape shape = {24, frames, 2, 2};
    const auto decoded =
        DecodeVideo("golden", {}, shape, std::vector<float>(shape.NumElements(), 0.5f));
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << decoded.status();
    EXPECT_THAT(decoded.status().message(), HasSubstr("no clip"));
  }
  const VideoLatentShape narrow = {16, 7, 2, 2};
  EXPECT_THAT(DecodeVideo("golden", {}, narrow, std::vector<float>(narrow.NumElements()))
                  .status()
                  .message(),
              HasSubstr("24 channels"));
}

}  // namespace
}  // namespace plumbline::h3
