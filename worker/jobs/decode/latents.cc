#include "worker/jobs/decode/latents.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/host_tensor.h"

namespace plumbline::jobs {
namespace {

constexpr char kVideo[] = "latents.video";
constexpr char kAudio[] = "latents.audio";
constexpr char kEither[] = "z";
constexpr char kAccepted[] =
    "float32 `z` or `latents.video` (1, channels, frames, height, width), `latents.audio` (2, "
    "width, "
    "latents), or both";

absl::Status NotLatents(absl::string_view field, const TensorInfo& tensor) {
  return FieldError(field,
                    absl::StrCat(Quoted(tensor.name), " is ", DTypeName(tensor.dtype), " ",
                                 h3::FormatShape(tensor.shape)),
                    kAccepted);
}

std::vector<float> ReadFloats(const SafetensorsFile& file, const TensorInfo& tensor) {
  const absl::Span<const uint8_t> bytes = file.Bytes(tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool IsPositive(absl::Span<const int64_t> shape) {
  for (const int64_t extent : shape) {
    if (extent < 1) return false;
  }
  return true;
}

v1::TensorDigest DigestOf(absl::string_view name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
  v1::TensorDigest digest;
  digest.set_name(std::string(name));
  digest.set_dtype(std::string(DTypeName(DType::kF32)));
  for (const int64_t extent : shape) digest.add_shape(extent);
  const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()),
                                        values.size() * sizeof(float));
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  digest.set_sha256(Sha256Hex(bytes));
  return digest;
}

}  // namespace

absl::StatusOr<Latents> ReadLatents(const std::string& path, absl::string_view field) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) return FieldError(field, file.status().message(), "a safetensors file");
  const TensorInfo* video = file->Find(kVideo);
  const TensorInfo* audio = file->Find(kAudio);
  if (const TensorInfo* either = file->Find(kEither); either != nullptr) {
    const bool is_audio = either->shape.size() == 3;
    const TensorInfo*& taken = is_audio ? audio : video;
    if (taken != nullptr) {
      return FieldError(field, absl::StrCat("has `z` beside ", Quoted(taken->name)), kAccepted);
    }
    taken = either;
  }
  if (video == nullptr && audio == nullptr) return FieldError(field, "holds no latents", kAccepted);
  Latents latents;
  if (video != nullptr) {
    if (video->dtype != DType::kF32 || video->shape.size() != 5 || video->shape[0] != 1 ||
        !IsPositive(video->shape)) {
      return NotLatents(field, *video);
    }
    latents.video_shape = {video->shape[1], video->shape[2], video->shape[3], video->shape[4]};
    latents.video = ReadFloats(*file, *video);
  }
  if (audio != nullptr) {
    if (audio->dtype != DType::kF32 || audio->shape.size() != 3 || audio->shape[0] > 2 ||
        !IsPositive(audio->shape)) {
      return NotLatents(field, *audio);
    }
    latents.audio_channels = audio->shape[0];
    latents.audio_width = audio->shape[1];
    latents.audio_latents = audio->shape[2];
    latents.audio = ReadFloats(*file, *audio);
  }
  return latents;
}

absl::Status CheckLatents(const Latents& latents, const h3::DecoderWeights& weights,
                          absl::string_view field) {
  if (latents.has_video() && latents.video_shape.channels != weights.video_config.latent_channels) {
    return FieldError(
        field, absl::StrCat("video latents have ", latents.video_shape.channels, " channels"),
        absl::StrCat(weights.video_config.latent_channels, ", as the checkpoint's decoder takes"));
  }
  if (latents.has_audio() && latents.audio_width != weights.audio_config.latent_channels) {
    return FieldError(
        field, absl::StrCat("audio latents have ", latents.audio_width, " values"),
        absl::StrCat(weights.audio_config.latent_channels, ", as the checkpoint's decoder takes"));
  }
  return absl::OkStatus();
}

std::vector<v1::TensorDigest> DigestLatents(const Latents& latents) {
  std::vector<v1::TensorDigest> digests;
  if (latents.has_video()) {
    const h3::VideoLatentShape& shape = latents.video_shape;
    digests.push_back(DigestOf(kVideo, {1, shape.channels, shape.frames, shape.height, shape.width},
                               latents.video));
  }
  if (latents.has_audio()) {
    digests.push_back(DigestOf(kAudio,
                               {latents.audio_channels, latents.audio_width, latents.audio_latents},
                               latents.audio));
  }
  return digests;
}

}  // namespace plumbline::jobs
