#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/mapped_file.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/media/frame_order.h"
#include "worker/media/tensor_media.h"

namespace plumbline::media {
namespace {

constexpr int kCompressionLevel = 3;

template <typename T>
absl::Span<const uint8_t> AsBytes(absl::Span<const T> values) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                             values.size() * sizeof(T));
}

const AudioTrack* NonEmpty(const AudioTrack* audio) {
  return audio != nullptr && !audio->samples.empty() ? audio : nullptr;
}

std::map<std::string, std::string> Metadata(const VideoFormat* video, const AudioTrack* audio) {
  std::map<std::string, std::string> metadata;
  if (video != nullptr) metadata["fps"] = absl::StrCat(video->frames_per_second);
  if (audio != nullptr) metadata["sampling_rate"] = absl::StrCat(audio->sample_rate_hz);
  return metadata;
}

TensorSpec SamplesSpec(const AudioTrack& audio) {
  return {"samples", DType::kF32, {audio.channels, audio.SamplesPerChannel()}};
}

}  // namespace

absl::StatusOr<TensorMediaWriter> TensorMediaWriter::Create(const std::string& path,
                                                            const TensorMediaOptions& options,
                                                            const VideoFormat* video,
                                                            const AudioTrack* audio) {
  audio = NonEmpty(audio);
  std::vector<TensorSpec> tensors;
  if (video != nullptr && options.frames) {
    tensors.push_back({"frames",
                       options.frames_u8 ? DType::kU8 : DType::kF32,
                       {video->frames, video->height, video->width, 3}});
  }
  if (video != nullptr && options.decoded) {
    tensors.push_back({"decoded", DType::kF32, {1, 3, video->frames, video->height, video->width}});
  }
  if (audio != nullptr) tensors.push_back(SamplesSpec(*audio));
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter file,
                             SafetensorsWriter::Create(path, tensors, Metadata(video, audio)));
  return TensorMediaWriter(std::move(file), options, video == nullptr ? VideoFormat{} : *video,
                           audio);
}

absl::Status TensorMediaWriter::AddFrame(const VideoFrame& frame, absl::Span<const float> decoded) {
  const auto values = static_cast<uint64_t>(video_.ValuesPerFrame());
  const auto index = static_cast<uint64_t>(next_++);
  if (options_.frames && options_.frames_u8) {
    interleaved_bytes_.resize(values);
    PlanesToPixels(frame.bytes, absl::MakeSpan(interleaved_bytes_));
    PLUMBLINE_RETURN_IF_ERROR(file_.WritePart("frames", index * values, interleaved_bytes_));
  } else if (options_.frames) {
    if (frame.values.size() != values) {
      return absl::InvalidArgumentError("float32 frames of a video that has 8 bits alone");
    }
    interleaved_.resize(values);
    PlanesToPixels(frame.values, absl::MakeSpan(interleaved_));
    PLUMBLINE_RETURN_IF_ERROR(file_.WritePart("frames", index * values * sizeof(float),
                                              AsBytes(absl::MakeConstSpan(interleaved_))));
  }
  if (!options_.decoded) return absl::OkStatus();
  if (decoded.size() != values) {
    return absl::InvalidArgumentError(
        absl::StrCat("a decoded frame of ", decoded.size(), " values instead of ", values));
  }
  const uint64_t plane = values / 3;
  for (uint64_t channel = 0; channel < 3; ++channel) {
    const uint64_t place = channel * static_cast<uint64_t>(video_.frames) + index;
    PLUMBLINE_RETURN_IF_ERROR(file_.WritePart("decoded", place * plane * sizeof(float),
                                              AsBytes(decoded.subspan(channel * plane, plane))));
  }
  return absl::OkStatus();
}

absl::Status TensorMediaWriter::Finish() {
  if (audio_ != nullptr) {
    PLUMBLINE_RETURN_IF_ERROR(
        file_.Write("samples", AsBytes(absl::MakeConstSpan(audio_->samples))));
  }
  return file_.Finish();
}

absl::StatusOr<std::vector<v1::TensorDigest>> DigestTensors(const std::string& path) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<v1::TensorDigest> digests;
  for (const TensorInfo& tensor : file.tensors()) {
    v1::TensorDigest& digest = digests.emplace_back();
    digest.set_name(tensor.name);
    digest.set_dtype(std::string(DTypeName(tensor.dtype)));
    for (const int64_t extent : tensor.shape) digest.add_shape(extent);
    digest.set_size_bytes(static_cast<int64_t>(tensor.size_bytes()));
    constexpr size_t kPart = 16 << 20;
    const absl::Span<const uint8_t> bytes = file.Bytes(tensor);
    Sha256 sha256;
    for (size_t offset = 0; offset < bytes.size(); offset += kPart) {
      sha256.Update(bytes.subspan(offset, kPart));
      ForgetMappedBytes(bytes.subspan(offset, kPart));
    }
    digest.set_sha256(sha256.FinishHex());
  }
  std::sort(digests.begin(), digests.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return digests;
}

void KeptFramesWriter::Remover::operator()(std::FILE* file) const {
  std::fclose(file);
  std::remove(path.c_str());
}

absl::StatusOr<KeptFramesWriter> KeptFramesWriter::Create(const std::string& path,
                                                          const VideoFormat& video,
                                                          const AudioTrack* audio) {
  const std::string temporary = absl::StrCat(path, ".frames");
  std::FILE* const file = std::fopen(temporary.c_str(), "wbe");
  if (file == nullptr) return FileError(temporary, "cannot create", errno);
  return KeptFramesWriter(path, TemporaryFile(file, Remover{temporary}), video, NonEmpty(audio));
}

absl::Status KeptFramesWriter::AddFrame(const VideoFrame& frame) {
  compressed_.resize(ZSTD_compressBound(frame.bytes.size()));
  const size_t size = ZSTD_compress(compressed_.data(), compressed_.size(), frame.bytes.data(),
                                    frame.bytes.size(), kCompressionLevel);
  if (ZSTD_isError(size)) {
    return absl::InternalError(absl::StrCat("zstd: ", ZSTD_getErrorName(size)));
  }
  const std::string& path = file_.get_deleter().path;
  if (std::fwrite(compressed_.data(), 1, size, file_.get()) != size) {
    return FileError(path, "cannot write", errno);
  }
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<int64_t>(size));
  return absl::OkStatus();
}

absl::Status KeptFramesWriter::Finish() {
  const std::string& path = file_.get_deleter().path;
  if (std::fflush(file_.get()) != 0) return FileError(path, "cannot write", errno);
  PLUMBLINE_ASSIGN_OR_RETURN(const MappedFile frames, MappedFile::Open(path));
  std::map<std::string, std::string> metadata = Metadata(&video_, audio_);
  metadata["height"] = absl::StrCat(video_.height);
  metadata["width"] = absl::StrCat(video_.width);
  const auto count = static_cast<int64_t>(ends_.size());
  std::vector<TensorView> tensors = {
      {{"frames.zstd", DType::kU8, {static_cast<int64_t>(frames.bytes().size())}}, frames.bytes()},
      {{"frames.ends", DType::kI64, {count}}, AsBytes(absl::MakeConstSpan(ends_))}};
  if (audio_ != nullptr) {
    tensors.push_back({SamplesSpec(*audio_), AsBytes(absl::MakeConstSpan(audio_->samples))});
  }
  if (count != video_.frames) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", count, " of ", video_.frames, " frames were written"));
  }
  return WriteSafetensors(path_, tensors, metadata);
}

}  // namespace plumbline::media
