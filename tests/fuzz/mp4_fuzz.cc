// MP4 files, through FFmpeg's libraries where the machine has them.
#include <memory>
#include <string>

#include "tests/fuzz/input.h"
#include "tests/fuzz/memory_file.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/mp4_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  static const auto* const ffmpeg =
      new absl::StatusOr<const media::FfmpegLibrary*>(media::FfmpegLibrary::Load());
  if (!ffmpeg->ok()) return 0;
  const fuzz::MemoryFile file(fuzz::Input(data, size).Rest());
  absl::StatusOr<std::unique_ptr<media::FrameSource>> video =
      media::OpenMp4Video(**ffmpeg, file.path());
  if (video.ok() && *video != nullptr) {
    const auto bytes = static_cast<size_t>((*video)->format().ValuesPerFrame());
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<media::VideoFrame> frame = (*video)->Next();
      if (!frame.ok()) break;
      FUZZ_REQUIRE(frame->bytes.size() == bytes);
    }
  }
  media::ReadMp4Audio(**ffmpeg, file.path()).IgnoreError();
  return 0;
}
