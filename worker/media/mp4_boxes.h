#ifndef PLUMBLINE_WORKER_MEDIA_MP4_BOXES_H_
#define PLUMBLINE_WORKER_MEDIA_MP4_BOXES_H_

#include <string>

#include "absl/status/status.h"

namespace plumbline::media {

// INVALID_ARGUMENT, naming the file, if one of the outermost boxes that hold an MP4's index and
// data (ISO/IEC 14496-12, 4.2) is said to reach behind the file's end: it was cut short. Decoders
// take what is left of a soundtrack for all of it. Whether it is an MP4 at all is not looked at.
absl::Status CheckMp4IsWhole(const std::string& path);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_MP4_BOXES_H_
