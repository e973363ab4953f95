// Both decoders against what the model's own code decoded, in every implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "worker/h3/decoders/decoders_fixture.h"

namespace plumbline::h3 {
namespace {

using ::testing::HasSubstr;

class VideoCaptureTest : public DecodersTest, public testing::WithParamInterface<const char*> {
 protected:
  // The golden is as near as float32 storage lets it be; float32 arithmetic a little further.
  double Limit() const { return 1e-5; }
};

INSTANTIATE_TEST_SUITE_P(Implementations, VideoCaptureTest,
                         testing::Values("golden", "provider", "candidate",
                                         "candidate+golden:attention,conv_pre+provider:gemms"));

TEST_P(VideoCaptureTest, TiledVideo) {
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
  const TilingOptions tiling = {true, 48, 16};
  const auto decoded = DecodeVideo(GetParam(), tiling, kCaptured, Floats(capture, "z"));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const double error = RelativeL2(Floats(capture, "decoded_tiled"), *decoded);
  std::printf("decoded_tiled %s: relative L2 %.3g\n", GetParam(), error);
  EXPECT_LE(error, Limit());
}

TEST_P(VideoCaptureTest, UntiledVideo) {
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
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
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
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
  const SafetensorsFile capture = *SafetensorsFile::Open(kAudioCapture);
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
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
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
  const SafetensorsFile capture = *SafetensorsFile::Open(kAudioCapture);
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
