#ifndef PLUMBLINE_WORKER_H3_DECODERS_DECODERS_FIXTURE_H_
#define PLUMBLINE_WORKER_H3_DECODERS_DECODERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "kernels/device.h"
#include "worker/h3/decoders/audio_decoder.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graph_calls.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/decoders/video_decoder.h"
#include "worker/h3/decoders/weights.h"

namespace plumbline::h3 {

inline constexpr char kVideoCapture[] = "tests/golden/video_vae_io.safetensors";
inline constexpr char kAudioCapture[] = "tests/golden/audio_vae_io.safetensors";
inline constexpr VideoLatentShape kCaptured = {24, 12, 4, 5};

inline std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
  const absl::StatusOr<absl::Span<const uint8_t>> bytes = file.Bytes(name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto* values = reinterpret_cast<const float*>(bytes->data());
  return {values, values + bytes->size() / sizeof(float)};
}

inline double RelativeL2(const std::vector<float>& reference, const std::vector<float>& x) {
  EXPECT_EQ(reference.size(), x.size());
  if (reference.size() != x.size()) return 1e30;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (static_cast<double>(reference[i]) - x[i]) * (reference[i] - x[i]);
    norm += static_cast<double>(reference[i]) * reference[i];
  }
  return std::sqrt(difference / norm);
}

// The bundled decoders on a device.
class DecodersTest : public testing::Test {
 protected:
  DecodersTest() : DecodersTest(*MakeCpuDevice(/*threads=*/2, int64_t{1} << 30)) {}
  explicit DecodersTest(std::shared_ptr<Device> device) : device_(std::move(device)) {
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
  std::shared_ptr<Device> device_;
  DecoderWeights weights_;
  Graph video_graph_;
  Graph audio_graph_;
};

// The first `frames` latent frames, lines and columns of (24, ...) latents.
inline std::vector<float> Cut(const std::vector<float>& latents, const VideoLatentShape& from,
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

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_DECODERS_FIXTURE_H_
