// Media: WAV, and safetensors of frames and samples, as they are opened to be compared.
#include <string>

#include "tests/fuzz/input.h"
#include "tests/fuzz/memory_file.h"
#include "worker/media/media_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  const fuzz::MemoryFile file(fuzz::Input(data, size).Rest());
  // MP4 has a fuzzer of its own.
  const absl::StatusOr<const media::FfmpegLibrary*> ffmpeg = absl::UnavailableError("none");
  absl::StatusOr<media::Media> opened = media::OpenMedia(ffmpeg, file.path());
  if (!opened.ok()) return 0;
  FUZZ_REQUIRE(opened->video != nullptr || opened->audio.channels > 0);
  if (opened->audio.channels > 0) {
    const int64_t samples = opened->audio.SamplesPerChannel();
    FUZZ_REQUIRE(samples > 0 && opened->audio.sample_rate_hz > 0);
    FUZZ_REQUIRE(opened->audio.Channel(opened->audio.channels - 1).size() ==
                 static_cast<size_t>(samples));
  }
  if (opened->video == nullptr) return 0;
  const media::VideoFormat& format = opened->video->format();
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<media::VideoFrame> frame = opened->video->Next();
    if (!frame.ok()) break;
    FUZZ_REQUIRE(frame->bytes.size() == static_cast<size_t>(format.ValuesPerFrame()));
  }
  return 0;
}
