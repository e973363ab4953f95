#ifndef PLUMBLINE_WORKER_MEDIA_WAV_H_
#define PLUMBLINE_WORKER_MEDIA_WAV_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

// A WAV file of float32 samples: exactly what is in `track`. INVALID_ARGUMENT for more than a WAV
// file can hold (4 GiB).
absl::Status WriteWav(const std::string& path, const AudioTrack& track);

// The samples of a WAV file: integers of 16, 24 or 32 bits, divided by their full scale, or
// float32; one or two channels. INVALID_ARGUMENT, naming the file, for anything else.
absl::StatusOr<AudioTrack> ReadWav(const std::string& path);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_WAV_H_
