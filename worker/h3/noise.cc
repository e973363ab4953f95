#include "worker/h3/noise.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/latent_rows.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::h3 {
namespace {

class GeneratorNoise final : public NoiseSource {
 public:
  GeneratorNoise(const Rng& rng, uint64_t seed, Device* device)
      : rng_(rng), generator_(MakeNormalGenerator(rng, seed, device)) {}

  std::string Identity() const override { return FormatRng(rng_); }

  absl::Status Draw(const NoiseDraw& draw, absl::Span<float> to) override {
    return generator_->Draw(to);
  }

 private:
  const Rng rng_;
  const std::unique_ptr<NormalGenerator> generator_;
};

class FileNoise final : public NoiseSource {
 public:
  FileNoise(SafetensorsFile file, std::string identity)
      : file_(std::move(file)), identity_(std::move(identity)) {}

  std::string Identity() const override { return identity_; }

  absl::Status Draw(const NoiseDraw& draw, absl::Span<float> to) override {
    PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file_.Bytes(draw.name));
    if (bytes.size() != to.size() * sizeof(float)) {
      return absl::InternalError(absl::StrCat("the noise file was opened for another run than ",
                                              draw.name, " is drawn for"));
    }
    std::memcpy(to.data(), bytes.data(), bytes.size());
    return absl::OkStatus();
  }

 private:
  const SafetensorsFile file_;
  const std::string identity_;
};

bool AllFinite(absl::Span<const uint8_t> bytes) {
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// What is wrong with the tensor of one draw, or "".
std::string FaultOf(const SafetensorsFile& file, const NoiseDraw& draw) {
  const TensorInfo* tensor = file.Find(draw.name);
  const std::string accepted = absl::StrCat("; accepted: F32 ", FormatShape(draw.shape));
  if (tensor == nullptr) return absl::StrCat("is missing", accepted);
  if (tensor->dtype != DType::kF32 || tensor->shape != draw.shape) {
    return absl::StrCat("is ", DTypeName(tensor->dtype), " ", FormatShape(tensor->shape), accepted);
  }
  if (!AllFinite(file.Bytes(*tensor))) return "holds a value that is not finite";
  return "";
}

absl::Span<float> Floats(const HostTensor& tensor) {
  return {static_cast<float*>(tensor.tensor.data),
          static_cast<size_t>(tensor.tensor.NumElements())};
}

absl::Status CheckConditions(const TransformerConfig& config, const LayoutSpec& spec,
                             absl::Span<const HostTensor> condition_latents) {
  if (static_cast<int64_t>(condition_latents.size()) != spec.Keyframes()) {
    return FieldError("condition_latents",
                      absl::StrCat("there are ", condition_latents.size(), " of them"),
                      absl::StrCat(spec.Keyframes(), ", as there are keyframes"));
  }
  for (size_t i = 0; i < condition_latents.size(); ++i) {
    const Tensor& latents = condition_latents[i].tensor;
    if (latents.batch != config.in_channels || latents.rows != spec.latent_height ||
        latents.width != spec.latent_width) {
      return FieldError(
          absl::StrCat("condition_latents.", i),
          absl::StrCat("is ", FormatShape({latents.batch, latents.rows, latents.width})),
          FormatShape({config.in_channels, spec.latent_height, spec.latent_width}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NoiseDraw> NoiseDraws(const TransformerConfig& config, const LayoutSpec& spec) {
  std::vector<NoiseDraw> draws;
  for (int64_t i = 0; i < spec.Keyframes(); ++i) {
    draws.push_back({absl::StrCat("noise.keyframe.", i),
                     {1, config.in_channels, 1, spec.latent_height, spec.latent_width}});
  }
  draws.push_back(
      {"noise.video",
       {1, config.in_channels, spec.latent_frames, spec.latent_height, spec.latent_width}});
  draws.push_back({"noise.audio", {spec.AudioRows(), config.audio_in_channels}});
  return draws;
}

std::unique_ptr<NoiseSource> MakeGeneratorNoise(const Rng& rng, uint64_t seed, Device* device) {
  return std::make_unique<GeneratorNoise>(rng, seed, device);
}

absl::StatusOr<std::unique_ptr<NoiseSource>> MakeFileNoise(SafetensorsFile file,
                                                           const TransformerConfig& config,
                                                           const LayoutSpec& spec) {
  const std::vector<NoiseDraw> draws = NoiseDraws(config, spec);
  std::vector<FieldViolation> violations;
  Sha256 digest;
  for (const NoiseDraw& draw : draws) {
    std::string fault = FaultOf(file, draw);
    if (!fault.empty()) {
      violations.push_back({absl::StrCat(file.path(), ": ", draw.name), std::move(fault)});
    } else {
      digest.Update(absl::StrCat(draw.name, " ", FormatShape(draw.shape), "\n"));
      digest.Update(file.Bytes(*file.Find(draw.name)));
    }
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!absl::c_any_of(draws, [&](const NoiseDraw& draw) { return draw.name == tensor.name; })) {
      violations.push_back({absl::StrCat(file.path(), ": ", Quoted(tensor.name)),
                            "is no draw of this run; accepted: noise.keyframe.N of each keyframe, "
                            "noise.video, noise.audio"});
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations));
  return std::make_unique<FileNoise>(std::move(file), absl::StrCat("file:", digest.FinishHex()));
}

absl::StatusOr<InitialRows> DrawInitialRows(const TransformerConfig& config, const LayoutSpec& spec,
                                            absl::Span<const HostTensor> condition_latents,
                                            NoiseSource* source) {
  PLUMBLINE_RETURN_IF_ERROR(CheckConditions(config, spec, condition_latents));
  const std::vector<NoiseDraw> draws = NoiseDraws(config, spec);
  InitialRows result;
  auto draw_next = [&](absl::Span<float> to) -> absl::Status {
    const NoiseDraw& draw = draws[result.noise.size()];
    PLUMBLINE_RETURN_IF_ERROR(source->Draw(draw, to));
    const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(to.data()),
                                          to.size() * sizeof(float));
    result.noise.push_back({draw, Sha256Hex(bytes)});
    return absl::OkStatus();
  };
  const VideoLatentShape keyframe = {config.in_channels, 1, spec.latent_height, spec.latent_width};
  const VideoLatentShape video = {config.in_channels, spec.latent_frames, spec.latent_height,
                                  spec.latent_width};
  PLUMBLINE_ASSIGN_OR_RETURN(
      result.video, AllocateHostTensor(DType::kF32, 1, spec.KeyframeRows() + spec.VideoRows(),
                                       config.VideoRowWidth()));
  PLUMBLINE_ASSIGN_OR_RETURN(
      result.audio, AllocateHostTensor(DType::kF32, 1, spec.AudioRows(), config.audio_in_channels));
  PLUMBLINE_ASSIGN_OR_RETURN(const HostTensor latents,
                             AllocateHostTensor(DType::kF32, 1, 1, video.NumElements()));
  absl::Span<float> rows = Floats(result.video);

  for (const HostTensor& condition : condition_latents) {
    const absl::Span<const float> clean = Floats(condition);
    const absl::Span<float> noised = Floats(latents).first(keyframe.NumElements());
    PLUMBLINE_RETURN_IF_ERROR(draw_next(noised));
    for (size_t i = 0; i < noised.size(); ++i) {
      noised[i] = kKeyframeTimestep * clean[i] + (1.0f - kKeyframeTimestep) * noised[i];
    }
    Patchify(keyframe, noised, rows.first(noised.size()));
    rows.remove_prefix(noised.size());
  }
  PLUMBLINE_RETURN_IF_ERROR(draw_next(Floats(latents)));
  Patchify(video, Floats(latents), rows);
  PLUMBLINE_RETURN_IF_ERROR(draw_next(Floats(result.audio)));
  return result;
}

}  // namespace plumbline::h3
