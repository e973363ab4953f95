#include "worker/media/ffmpeg_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::media {
namespace {

// A library of that name and major version, e.g. libavutil.so.57.
absl::StatusOr<void*> Open(absl::string_view name, int major) {
  const std::string file = absl::StrCat(name, ".so.", major);
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  return absl::UnavailableError(absl::StrCat("FFmpeg: ", dlerror()));
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("FFmpeg: ", dlerror()));
}

absl::StatusOr<FfmpegLibrary> LoadNow() {
  FfmpegLibrary loaded;
  PLUMBLINE_ASSIGN_OR_RETURN(void* const avutil, Open("libavutil", LIBAVUTIL_VERSION_MAJOR));
  PLUMBLINE_ASSIGN_OR_RETURN(void* const avcodec, Open("libavcodec", LIBAVCODEC_VERSION_MAJOR));
  PLUMBLINE_ASSIGN_OR_RETURN(void* const avformat, Open("libavformat", LIBAVFORMAT_VERSION_MAJOR));
  PLUMBLINE_ASSIGN_OR_RETURN(void* const swscale, Open("libswscale", LIBSWSCALE_VERSION_MAJOR));
  void* library = avutil;
#define PLUMBLINE_FIND(name) PLUMBLINE_RETURN_IF_ERROR(Find(library, #name, &loaded.name));
  PLUMBLINE_AVUTIL_FUNCTIONS(PLUMBLINE_FIND)
  library = avcodec;
  PLUMBLINE_AVCODEC_FUNCTIONS(PLUMBLINE_FIND)
  library = avformat;
  PLUMBLINE_AVFORMAT_FUNCTIONS(PLUMBLINE_FIND)
  library = swscale;
  PLUMBLINE_SWSCALE_FUNCTIONS(PLUMBLINE_FIND)
#undef PLUMBLINE_FIND
  for (const char* encoder : {"libx264", "aac"}) {
    if (loaded.avcodec_find_encoder_by_name(encoder) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("FFmpeg: this machine's libavcodec has no encoder ", encoder));
    }
  }
  // What it would write to the standard error comes back as a status.
  loaded.av_log_set_level(AV_LOG_QUIET);
  return loaded;
}

}  // namespace

absl::StatusOr<const FfmpegLibrary*> FfmpegLibrary::Load() {
  static const auto* const loaded = new absl::StatusOr<FfmpegLibrary>(LoadNow());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

absl::Status FfmpegLibrary::Check(int result, absl::string_view what, absl::StatusCode code) const {
  if (result >= 0) return absl::OkStatus();
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(result, text, sizeof(text));
  return absl::Status(code, absl::StrCat(what, ": ", text));
}

}  // namespace plumbline::media
