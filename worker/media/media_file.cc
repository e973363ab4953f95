#include "worker/media/media_file.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "worker/media/mp4_reader.h"
#include "worker/media/wav.h"

namespace plumbline::media {
namespace {

// Whether the bytes at `offset` are `mark`.
bool Has(absl::Span<const uint8_t> bytes, size_t offset, absl::string_view mark) {
  return bytes.size() >= offset + mark.size() &&
         std::memcmp(bytes.data() + offset, mark.data(), mark.size()) == 0;
}

}  // namespace

absl::StatusOr<Media> OpenMedia(const absl::StatusOr<const FfmpegLibrary*>& ffmpeg,
                                const std::string& path) {
  bool is_wav, is_mp4, is_safetensors;
  {
    PLUMBLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    is_wav = Has(file.bytes(), 0, "RIFF") && Has(file.bytes(), 8, "WAVE");
    is_mp4 = Has(file.bytes(), 4, "ftyp");
    // Behind eight bytes of length, JSON.
    is_safetensors = Has(file.bytes(), 8, "{");
  }
  Media media;
  if (is_wav) {
    PLUMBLINE_ASSIGN_OR_RETURN(media.audio, ReadWav(path));
    return media;
  }
  if (!is_mp4 && !is_safetensors) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no media file"));
  }
  if (!is_mp4) return OpenTensorMedia(path);
  if (!ffmpeg.ok()) return AnnotateStatus(ffmpeg.status(), absl::StrCat(path, " is an MP4"));
  PLUMBLINE_ASSIGN_OR_RETURN(media.video, OpenMp4Video(*ffmpeg, path));
  PLUMBLINE_ASSIGN_OR_RETURN(media.audio, ReadMp4Audio(*ffmpeg, path));
  if (media.video == nullptr && media.audio.channels == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it holds neither picture nor sound"));
  }
  return media;
}

}  // namespace plumbline::media
