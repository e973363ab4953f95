#include "worker/h3/decoders/weights.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "kernels/numerics/synthetic.h"
#include "worker/h3/decoders/parameters.h"
#include "worker/h3/parameter_files.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kField = "checkpoint";
constexpr absl::string_view kSyntheticPrefix = "synthetic:";
constexpr absl::string_view kVideoModel = "vae";
constexpr absl::string_view kAudioModel = "audio_vae";
// Of synthetic decoders, whatever that of the transformer.
constexpr uint64_t kSeed = 0;

// Half of the low-pass filter of the audio decoder's activations, which is symmetric: 12 taps of a
// sinc of cutoff 0.25 in a Kaiser window of half-width 0.3, normalised, as PyTorch computes it.
constexpr float kResamplingFilter[kResamplingTaps / 2] = {
    0x1.09f0c2p-9f,  0x1.33ac8cp-7f, -0x1.a28108p-6f,
    -0x1.d8544cp-5f, 0x1.075110p-3f, 0x1.c5d8cap-2f,
};

class FileParameters : public ParameterSource {
 public:
  FileParameters(std::string model, std::string canonical_config,
                 std::vector<ParameterSpec> parameters, std::shared_ptr<const SafetensorsFile> file)
      : ParameterSource(std::move(model), std::move(canonical_config), std::move(parameters)),
        file_(std::move(file)) {}

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the decoder has no parameter ", Quoted(name)));
    }
    return ReadParameter(file_, *parameter);
  }

  std::string Description() const override { return DescribeFile(*file_); }

  absl::StatusOr<std::string> Identity() const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string digest, Digest());
    return absl::StrCat("sha256:", digest);
  }

 private:
  absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file_->Bytes(parameter.name));
    hash->Update(bytes);
    return absl::OkStatus();
  }

  const std::shared_ptr<const SafetensorsFile> file_;
};

using Recipe = SyntheticRecipe (*)(absl::string_view name, absl::Span<const int64_t> shape);

class SyntheticParameters : public ParameterSource {
 public:
  SyntheticParameters(absl::string_view model, std::string canonical_config,
                      std::vector<ParameterSpec> parameters, Recipe recipe)
      : ParameterSource(std::string(model), canonical_config, std::move(parameters)),
        prefix_(absl::StrCat(model, ".")),
        identity_(absl::StrCat("synthetic:", Sha256Hex(canonical_config), ":", kSeed)),
        recipe_(recipe) {}

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the decoder has no parameter ", Quoted(name)));
    }
    const Tensor shape = ParameterView(nullptr, parameter->dtype, parameter->shape);
    PLUMBLINE_ASSIGN_OR_RETURN(
        WeightView view, AllocateHostTensor(shape.dtype, shape.batch, shape.rows, shape.width));
    auto* const values = static_cast<float*>(view.tensor.data);
    if (absl::EndsWith(name, ".filter")) {
      for (int64_t i = 0; i < kResamplingTaps; ++i) {
        values[i] = kResamplingFilter[std::min(i, kResamplingTaps - 1 - i)];
      }
    } else {
      FillSynthetic(absl::StrCat(prefix_, name), kSeed, recipe_(name, parameter->shape), 0,
                    absl::MakeSpan(values, static_cast<size_t>(parameter->NumElements())));
    }
    return view;
  }

  std::string Description() const override { return "synthetic"; }
  absl::StatusOr<std::string> Identity() const override { return identity_; }

 private:
  absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const WeightView view, Get(parameter.name));
    hash->Update(view.Bytes());
    return absl::OkStatus();
  }

  const std::string prefix_;
  const std::string identity_;
  const Recipe recipe_;
};

absl::StatusOr<DecoderWeights> Open(absl::string_view spec, const std::vector<std::string>& roots) {
  DecoderWeights weights;
  if (absl::ConsumePrefix(&spec, kSyntheticPrefix)) {
    const bool released = spec == "released" || absl::StartsWith(spec, "released:");
    weights.video_config = released ? ReleasedVideoDecoder() : TinyVideoDecoder();
    weights.audio_config = released ? ReleasedAudioDecoder() : TinyAudioDecoder();
    weights.video = MakeSyntheticDecoder(weights.video_config);
    weights.audio = MakeSyntheticDecoder(weights.audio_config);
    return weights;
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string directory, ResolveUnderRoots(spec, roots));
  const auto open = [&](absl::string_view model, const auto& config,
                        std::vector<ParameterSpec> parameters)
      -> absl::StatusOr<std::shared_ptr<const ParameterSource>> {
    PLUMBLINE_ASSIGN_OR_RETURN(std::shared_ptr<const SafetensorsFile> file,
                               OpenModelFile(directory, model, roots));
    PLUMBLINE_RETURN_IF_ERROR(CheckModelTensors(parameters, *file, model, /*others_allowed=*/true));
    return std::make_shared<const FileParameters>(std::string(model), CanonicalConfigJson(config),
                                                  std::move(parameters), std::move(file));
  };
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string video_json,
                             ReadModelConfig(directory, kVideoModel, roots));
  PLUMBLINE_ASSIGN_OR_RETURN(
      weights.video_config,
      ParseVideoDecoderConfig(video_json, absl::StrCat(kVideoModel, "/config.json")));
  PLUMBLINE_ASSIGN_OR_RETURN(weights.video, open(kVideoModel, weights.video_config,
                                                 VideoDecoderParameters(weights.video_config)));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string audio_json,
                             ReadModelConfig(directory, kAudioModel, roots));
  PLUMBLINE_ASSIGN_OR_RETURN(
      weights.audio_config,
      ParseAudioDecoderConfig(audio_json, absl::StrCat(kAudioModel, "/config.json")));
  PLUMBLINE_ASSIGN_OR_RETURN(weights.audio, open(kAudioModel, weights.audio_config,
                                                 AudioDecoderParameters(weights.audio_config)));
  return weights;
}

}  // namespace

absl::StatusOr<std::string> DecoderWeights::Identity() const {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string of_video, video->Identity());
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string of_audio, audio->Identity());
  return absl::StrCat(of_video, " ", of_audio);
}

std::shared_ptr<const ParameterSource> MakeSyntheticDecoder(const VideoDecoderConfig& config) {
  return std::make_shared<const SyntheticParameters>(
      kVideoModel, CanonicalConfigJson(config), VideoDecoderParameters(config), &VideoVaeRecipe);
}

std::shared_ptr<const ParameterSource> MakeSyntheticDecoder(const AudioDecoderConfig& config) {
  return std::make_shared<const SyntheticParameters>(
      kAudioModel, CanonicalConfigJson(config), AudioDecoderParameters(config), &AudioVaeRecipe);
}

absl::StatusOr<DecoderWeights> OpenDecoders(absl::string_view spec,
                                            const std::vector<std::string>& roots) {
  absl::StatusOr<DecoderWeights> weights = Open(spec, roots);
  if (weights.ok() || absl::IsResourceExhausted(weights.status())) return weights;
  // Whatever is wrong with the files is wrong with the request's field.
  absl::string_view message = weights.status().message();
  absl::ConsumePrefix(&message, absl::StrCat(kField, ": "));
  return FieldError(kField, message);
}

}  // namespace plumbline::h3
