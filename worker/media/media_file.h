#ifndef PLUMBLINE_WORKER_MEDIA_MEDIA_FILE_H_
#define PLUMBLINE_WORKER_MEDIA_MEDIA_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/tensor_media.h"

namespace plumbline::media {

// Opens a media file by what it begins with: WAV, MP4 or QuickTime, or safetensors. `ffmpeg` may
// hold an error, which is then that of an MP4. Errors are those of the readers.
absl::StatusOr<Media> OpenMedia(const absl::StatusOr<const FfmpegLibrary*>& ffmpeg,
                                const std::string& path);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_MEDIA_FILE_H_
