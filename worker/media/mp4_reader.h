#ifndef PLUMBLINE_WORKER_MEDIA_MP4_READER_H_
#define PLUMBLINE_WORKER_MEDIA_MP4_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

// The picture of an MP4 or QuickTime file, H.264, as 8-bit RGB: decoded by one thread, with the
// matrix and range that it is marked with, BT.709 and limited where it is not. Null if the file
// holds no picture. Nothing beside the file is opened, whatever it refers to. `ffmpeg` must outlive
// the source. INVALID_ARGUMENT, naming the file, if it is none of these, or is damaged; the
// source's errors likewise.
absl::StatusOr<std::unique_ptr<FrameSource>> OpenMp4Video(const FfmpegLibrary* ffmpeg,
                                                          const std::string& path);

// Its soundtrack, AAC; one without channels if there is none. Errors as above, and
// for more than two channels or 2^26 samples a channel.
absl::StatusOr<AudioTrack> ReadMp4Audio(const FfmpegLibrary* ffmpeg, const std::string& path);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_MP4_READER_H_
