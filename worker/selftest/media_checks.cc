// Decoders and figures of quality against captures.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files.h"
#include "common/json.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/h3/composition.h"
#include "worker/h3/decoders/audio_decoder.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graph_calls.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/decoders/video_decoder.h"
#include "worker/h3/decoders/weights.h"
#include "worker/media/audio_meter.h"
#include "worker/media/video_meter.h"
#include "worker/selftest/checks.h"

namespace plumbline::selftest {
namespace {

constexpr double kDecoderBound = 1e-5;
constexpr double kFigureBound = 1e-6;
constexpr h3::VideoLatentShape kCapturedVideo = {24, 12, 4, 5};
constexpr h3::TilingOptions kCapturedTiling = {true, 48, 16};  // Pixels.
constexpr int64_t kAudioChannels = 2, kAudioLatents = 9;
constexpr int kSamplesPerSecond = 32000;

absl::StatusOr<std::vector<float>> Floats(const SafetensorsFile& file, const std::string& name) {
  PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file.Bytes(name));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Outcome RelativeL2(const std::vector<float>& reference, const std::vector<float>& x) {
  if (reference.size() != x.size()) return {"another number of values", false};
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (static_cast<double>(reference[i]) - x[i]) * (reference[i] - x[i]);
    norm += static_cast<double>(reference[i]) * reference[i];
  }
  const double error = std::sqrt(difference / norm);
  return {absl::StrFormat("%.2g", error), error <= kDecoderBound};
}

// Both decoders of the bundled checkpoint under the golden composition.
struct Decoders {
  h3::DecoderWeights weights;
  h3::Graph video;
  h3::Graph audio;
};

absl::StatusOr<Decoders> OpenDecoders() {
  Decoders decoders;
  PLUMBLINE_ASSIGN_OR_RETURN(decoders.weights, h3::OpenDecoders("synthetic:tiny", {}));
  decoders.video = h3::BuildVideoDecoderGraph(decoders.weights.video_config);
  decoders.audio = h3::BuildAudioDecoderGraph(decoders.weights.audio_config);
  return decoders;
}

absl::StatusOr<h3::DecoderComposition> Golden(const Bench& bench, const Decoders& decoders) {
  const jobs::JobContext& context = bench.environment.context;
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition composition, h3::ParseComposition("golden"));
  return h3::ResolveDecoders(composition, decoders.video, decoders.audio, *context.registry,
                             context.device->kind());
}

// A device whose decoders are not there is left out.
Outcome NoDecoder(const absl::Status& status) {
  Outcome outcome;
  outcome.skipped = absl::StrCat("no decoder on this device: ", status.message());
  return outcome;
}

absl::StatusOr<Outcome> CheckVideoDecoder(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile capture,
                             SafetensorsFile::Open(bench.Golden("video_vae_io.safetensors")));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> latents, Floats(capture, "z"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> expected, Floats(capture, "decoded_tiled"));
  PLUMBLINE_ASSIGN_OR_RETURN(const Decoders decoders, OpenDecoders());
  const absl::StatusOr<h3::DecoderComposition> golden = Golden(bench, decoders);
  const jobs::JobContext& context = bench.environment.context;
  if (!golden.ok() && context.device->kind() != DeviceKind::kCpu) return NoDecoder(golden.status());
  PLUMBLINE_RETURN_IF_ERROR(golden.status());
  h3::GraphCalls calls(decoders.video, golden->video, *decoders.weights.video, *context.registry,
                       *context.device, context.check_cancelled);
  PLUMBLINE_ASSIGN_OR_RETURN(
      h3::VideoDecoder decoder,
      h3::VideoDecoder::Create(decoders.weights.video_config, kCapturedTiling, golden->blend,
                               kCapturedVideo, latents, &calls));
  const int64_t pixels = decoder.height() * decoder.width();
  h3::ClipJoiner joiner(decoder.plan(), 3, pixels, golden->blend);
  std::vector<float> frames;
  for (int64_t clip = 0; clip < decoder.plan().clips; ++clip) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> raw, decoder.DecodeClip(clip));
    const std::vector<float> made = joiner.Add(raw);
    frames.insert(frames.end(), made.begin(), made.end());
  }
  // Frames of planes to planes of frames.
  const int64_t count = decoder.plan().frames;
  if (static_cast<int64_t>(frames.size()) != count * 3 * pixels) {
    return Outcome{"another number of frames", false};
  }
  std::vector<float> planes(frames.size());
  for (int64_t frame = 0; frame < count; ++frame) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      std::copy_n(frames.begin() + (frame * 3 + channel) * pixels, pixels,
                  planes.begin() + (channel * count + frame) * pixels);
    }
  }
  return RelativeL2(expected, planes);
}

absl::StatusOr<Outcome> CheckAudioDecoder(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile capture,
                             SafetensorsFile::Open(bench.Golden("audio_vae_io.safetensors")));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> latents, Floats(capture, "z"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> expected, Floats(capture, "decoded"));
  PLUMBLINE_ASSIGN_OR_RETURN(const Decoders decoders, OpenDecoders());
  const absl::StatusOr<h3::DecoderComposition> golden = Golden(bench, decoders);
  const jobs::JobContext& context = bench.environment.context;
  if (!golden.ok() && context.device->kind() != DeviceKind::kCpu) return NoDecoder(golden.status());
  PLUMBLINE_RETURN_IF_ERROR(golden.status());
  h3::GraphCalls calls(decoders.audio, golden->audio, *decoders.weights.audio, *context.registry,
                       *context.device, context.check_cancelled);
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> samples,
                             h3::DecodeAudio(decoders.weights.audio_config, kAudioChannels,
                                             kAudioLatents, latents, &calls));
  return RelativeL2(expected, samples);
}

absl::StatusOr<Outcome> CheckMetrics(const Bench& bench) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile capture,
                             SafetensorsFile::Open(bench.Golden("metrics_io.safetensors")));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(bench.Golden("golden.json"), 1 << 20));
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json golden, ParseJson(text, "golden.json"));
  const nlohmann::json& expected = golden["metrics"];
  const TensorInfo* const video = capture.Find("video.a");  // (frames, height, width, 3)
  if (video == nullptr || video->shape.size() != 4) return Outcome{"no captured video", false};
  const int64_t frames = video->shape[0], height = video->shape[1], width = video->shape[2];
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> reference, Floats(capture, "video.a"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> subject, Floats(capture, "video.b"));

  ThreadPool pool(bench.environment.threads);
  media::VideoMeter meter(height, width, &pool);
  const int64_t pixels = height * width;
  std::vector<float> planes[2];
  for (int64_t f = 0; f < frames; ++f) {
    media::VideoFrame both[2];
    for (int side = 0; side < 2; ++side) {
      const std::vector<float>& values = side == 0 ? subject : reference;
      planes[side].resize(3 * pixels);
      for (int64_t i = 0; i < 3 * pixels; ++i) {
        planes[side][i % 3 * pixels + i / 3] = values[f * 3 * pixels + i];
      }
      both[side].index = f;
      both[side].values = planes[side];
    }
    meter.Add(both[0], both[1]);
  }
  v1::QualityReport report;
  meter.Finish(&report);
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<float> sound, Floats(capture, "audio.b"));
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<float> reference_sound, Floats(capture, "audio.a"));
  media::MeasureAudio({kSamplesPerSecond, kAudioChannels, std::move(sound)},
                      {kSamplesPerSecond, kAudioChannels, std::move(reference_sound)}, &report);

  double ssim = 0;
  for (const nlohmann::json& frame : expected["ssim_skimage_per_frame"])
    ssim += frame.get<double>();
  ssim /= static_cast<double>(frames);
  const double worst = std::max(
      {std::abs(report.psnr_db() - expected["psnr_global"].get<double>()),
       std::abs(report.ssim() - ssim),
       std::abs(report.temporal_rmse() - expected["temporal_rmse"].get<double>()),
       std::abs(report.audio_relative_l2() - expected["audio_relative_l2"].get<double>())});
  return Outcome{absl::StrFormat("within %.2g", worst), worst <= kFigureBound};
}

}  // namespace

void AddMediaChecks(const Bench& bench, std::vector<Check>* checks) {
  const auto add = [&](absl::string_view file, absl::string_view job, std::string expected,
                       absl::StatusOr<Outcome> (*check)(const Bench&)) {
    checks->push_back(
        {Row(file, "capture", job, expected), [&bench, check] { return check(bench); }});
  };
  const std::string bound = absl::StrFormat("golden: relative L2 <= %g", kDecoderBound);
  add("video_vae_io.safetensors", "decode", bound, CheckVideoDecoder);
  add("audio_vae_io.safetensors", "decode", bound, CheckAudioDecoder);
  add("metrics_io.safetensors", "comparison", absl::StrFormat("within %g", kFigureBound),
      CheckMetrics);
}

}  // namespace plumbline::selftest
