#include <zstd.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mapped_file.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "worker/media/frame_order.h"
#include "worker/media/limits.h"
#include "worker/media/tensor_media.h"

namespace plumbline::media {
namespace {

constexpr double kDefaultFrameRate = 24;
constexpr int32_t kDefaultSamplingRate = 32000;
constexpr int64_t kMaxFrames = 1 << 20;

absl::Status Bad(const SafetensorsFile& file, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", what));
}

absl::Status BadShape(const SafetensorsFile& file, const TensorInfo& tensor,
                      absl::string_view wanted) {
  return Bad(file, absl::StrCat(tensor.name, ": ", DTypeName(tensor.dtype), " (",
                                absl::StrJoin(tensor.shape, ", "), "); accepted: ", wanted));
}

// A number of the metadata that must lie in [1, max]; `value` stays where there is none.
absl::Status ReadNumber(const SafetensorsFile& file, const std::string& key, double max,
                        double* value) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return absl::OkStatus();
  if (absl::SimpleAtod(found->second, value) && *value > 0 && *value <= max) {
    return absl::OkStatus();
  }
  return Bad(file, absl::StrCat("metadata ", key, ": ", Quoted(found->second),
                                "; accepted: more than 0, at most ", max));
}

absl::Status CheckSize(const SafetensorsFile& file, const VideoFormat& format) {
  if (format.frames >= 1 && format.frames <= kMaxFrames &&
      IsReadableFrameSize(format.height, format.width)) {
    return absl::OkStatus();
  }
  return Bad(file, absl::StrCat(format.frames, " frames of ", format.width, "x", format.height,
                                "; accepted: 1 to ", kMaxFrames, " frames with sides of 1 to ",
                                kMaxFrameSide, ", at most ", kMaxFramePixels, " pixels"));
}

// `frames`, read where they lie.
class TensorSource final : public FrameSource {
 public:
  TensorSource(std::shared_ptr<const SafetensorsFile> file, const TensorInfo& tensor,
               const VideoFormat& format)
      : file_(std::move(file)),
        data_(file_->Bytes(tensor)),
        is_float_(tensor.dtype == DType::kF32),
        format_(format),
        bytes_(static_cast<size_t>(format.ValuesPerFrame())) {
    if (is_float_) {
      pixels_.resize(bytes_.size());
      values_.resize(bytes_.size());
    }
  }

  const VideoFormat& format() const override { return format_; }
  bool HasValues() const override { return is_float_; }

  absl::StatusOr<VideoFrame> Next() override {
    if (next_ == format_.frames) return absl::OutOfRangeError("behind the last frame");
    const size_t size = bytes_.size() * (is_float_ ? sizeof(float) : 1);
    const absl::Span<const uint8_t> data = data_.subspan(static_cast<size_t>(next_) * size, size);
    VideoFrame frame;
    frame.index = next_++;
    if (is_float_) {
      // They may begin anywhere.
      std::memcpy(pixels_.data(), data.data(), size);
      PixelsToPlanes(absl::MakeConstSpan(pixels_), absl::MakeSpan(values_));
      ToBytes(values_, absl::MakeSpan(bytes_));
      frame.values = values_;
    } else {
      PixelsToPlanes(data, absl::MakeSpan(bytes_));
    }
    frame.bytes = bytes_;
    ForgetMappedBytes(data);
    return frame;
  }

 private:
  const std::shared_ptr<const SafetensorsFile> file_;
  const absl::Span<const uint8_t> data_;
  const bool is_float_;
  const VideoFormat format_;
  int64_t next_ = 0;
  std::vector<float> pixels_;
  std::vector<float> values_;
  std::vector<uint8_t> bytes_;
};

// `frames.zstd`.
class KeptSource final : public FrameSource {
 public:
  KeptSource(std::shared_ptr<const SafetensorsFile> file, std::vector<int64_t> ends,
             const VideoFormat& format)
      : file_(std::move(file)),
        data_(*file_->Bytes("frames.zstd")),
        ends_(std::move(ends)),
        format_(format),
        bytes_(static_cast<size_t>(format.ValuesPerFrame())) {}

  const VideoFormat& format() const override { return format_; }
  bool HasValues() const override { return false; }

  absl::StatusOr<VideoFrame> Next() override {
    if (next_ == format_.frames) return absl::OutOfRangeError("behind the last frame");
    const auto begin = static_cast<size_t>(next_ == 0 ? 0 : ends_[next_ - 1]);
    const absl::Span<const uint8_t> data = data_.subspan(begin, ends_[next_] - begin);
    const size_t size = ZSTD_decompress(bytes_.data(), bytes_.size(), data.data(), data.size());
    if (ZSTD_isError(size) || size != bytes_.size()) {
      return Bad(*file_, absl::StrCat("frames.zstd: frame ", next_, " is no frame of ",
                                      format_.width, "x", format_.height));
    }
    ForgetMappedBytes(data);
    VideoFrame frame;
    frame.index = next_++;
    frame.bytes = bytes_;
    return frame;
  }

 private:
  const std::shared_ptr<const SafetensorsFile> file_;
  const absl::Span<const uint8_t> data_;
  const std::vector<int64_t> ends_;
  const VideoFormat format_;
  int64_t next_ = 0;
  std::vector<uint8_t> bytes_;
};

absl::StatusOr<std::unique_ptr<FrameSource>> OpenKept(std::shared_ptr<const SafetensorsFile> file,
                                                      const TensorInfo& frames,
                                                      VideoFormat format) {
  const TensorInfo* const ends_info = file->Find("frames.ends");
  if (ends_info == nullptr) return Bad(*file, "frames.zstd without frames.ends");
  if (frames.dtype != DType::kU8) return BadShape(*file, frames, "U8 (bytes)");
  if (ends_info->dtype != DType::kI64 || ends_info->shape.size() != 1) {
    return BadShape(*file, *ends_info, "I64 (frames)");
  }
  double height = 0, width = 0;
  PLUMBLINE_RETURN_IF_ERROR(ReadNumber(*file, "height", kMaxFrameSide, &height));
  PLUMBLINE_RETURN_IF_ERROR(ReadNumber(*file, "width", kMaxFrameSide, &width));
  format.frames = ends_info->shape[0];
  format.height = static_cast<int64_t>(height);
  format.width = static_cast<int64_t>(width);
  PLUMBLINE_RETURN_IF_ERROR(CheckSize(*file, format));
  std::vector<int64_t> ends(static_cast<size_t>(format.frames));
  std::memcpy(ends.data(), file->Bytes(*ends_info).data(), ends.size() * sizeof(int64_t));
  int64_t previous = 0;
  for (const int64_t end : ends) {
    if (end < previous || end > static_cast<int64_t>(frames.size_bytes())) {
      return Bad(*file, absl::StrCat("frames.ends: ", end, " behind ", previous, " of ",
                                     frames.size_bytes(), " bytes"));
    }
    previous = end;
  }
  return std::make_unique<KeptSource>(std::move(file), std::move(ends), format);
}

absl::StatusOr<std::unique_ptr<FrameSource>> OpenFrames(
    const std::shared_ptr<const SafetensorsFile>& file) {
  VideoFormat format;
  format.frames_per_second = kDefaultFrameRate;
  PLUMBLINE_RETURN_IF_ERROR(ReadNumber(*file, "fps", 1e6, &format.frames_per_second));
  if (const TensorInfo* const kept = file->Find("frames.zstd"); kept != nullptr) {
    return OpenKept(file, *kept, format);
  }
  const TensorInfo* const frames = file->Find("frames");
  if (frames == nullptr) return nullptr;
  if ((frames->dtype != DType::kF32 && frames->dtype != DType::kU8) || frames->shape.size() != 4 ||
      frames->shape[3] != 3) {
    return BadShape(*file, *frames, "F32 or U8 (frames, height, width, 3)");
  }
  format.frames = frames->shape[0];
  format.height = frames->shape[1];
  format.width = frames->shape[2];
  PLUMBLINE_RETURN_IF_ERROR(CheckSize(*file, format));
  return std::make_unique<TensorSource>(file, *frames, format);
}

absl::StatusOr<AudioTrack> ReadSamples(const SafetensorsFile& file) {
  AudioTrack track;
  const TensorInfo* const samples = file.Find("samples");
  if (samples == nullptr) return track;
  if (samples->dtype != DType::kF32 || samples->shape.size() != 2 || samples->shape[0] < 1 ||
      samples->shape[0] > 2 || samples->shape[1] < 1 || samples->shape[1] > kMaxSamples) {
    return BadShape(file, *samples,
                    absl::StrCat("F32 (1 or 2 channels, 1 to ", kMaxSamples, " samples)"));
  }
  double rate = kDefaultSamplingRate;
  PLUMBLINE_RETURN_IF_ERROR(ReadNumber(file, "sampling_rate", kMaxSampleRateHz, &rate));
  track.sample_rate_hz = static_cast<int32_t>(std::ceil(rate));
  track.channels = samples->shape[0];
  track.samples.resize(samples->size_bytes() / sizeof(float));
  std::memcpy(track.samples.data(), file.Bytes(*samples).data(), samples->size_bytes());
  return track;
}

}  // namespace

absl::StatusOr<Media> OpenTensorMedia(const std::string& path) {
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  Media media;
  PLUMBLINE_ASSIGN_OR_RETURN(media.video, OpenFrames(file));
  PLUMBLINE_ASSIGN_OR_RETURN(media.audio, ReadSamples(*file));
  if (media.video == nullptr && media.audio.channels == 0) {
    return Bad(*file, "it holds neither `frames` nor `samples`");
  }
  return media;
}

}  // namespace plumbline::media
