// FFmpeg's libraries, loaded when first asked for. What is declared in their headers is known when
// the worker is built; the libraries themselves are those of the machine it runs on, or are not
// there.
#ifndef PLUMBLINE_WORKER_MEDIA_FFMPEG_LIBRARY_H_
#define PLUMBLINE_WORKER_MEDIA_FFMPEG_LIBRARY_H_

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::media {

// The functions that are used, by library.
// clang-format off
#define PLUMBLINE_AVUTIL_FUNCTIONS(F) \
  F(av_channel_layout_default) \
  F(av_d2q) \
  F(av_dict_free) \
  F(av_dict_set) \
  F(av_frame_alloc) \
  F(av_frame_free) \
  F(av_frame_get_buffer) \
  F(av_frame_make_writable) \
  F(av_frame_unref) \
  F(av_log_set_level) \
  F(av_opt_set) \
  F(av_strerror)
#define PLUMBLINE_AVCODEC_FUNCTIONS(F) \
  F(av_packet_alloc) \
  F(av_packet_free) \
  F(av_packet_rescale_ts) \
  F(av_packet_unref) \
  F(avcodec_alloc_context3) \
  F(avcodec_find_decoder) \
  F(avcodec_find_encoder_by_name) \
  F(avcodec_free_context) \
  F(avcodec_open2) \
  F(avcodec_parameters_from_context) \
  F(avcodec_parameters_to_context) \
  F(avcodec_receive_frame) \
  F(avcodec_receive_packet) \
  F(avcodec_send_frame) \
  F(avcodec_send_packet)
#define PLUMBLINE_AVFORMAT_FUNCTIONS(F) \
  F(av_interleaved_write_frame) \
  F(av_read_frame) \
  F(av_write_trailer) \
  F(avformat_alloc_output_context2) \
  F(avformat_close_input) \
  F(avformat_find_stream_info) \
  F(avformat_free_context) \
  F(avformat_new_stream) \
  F(avformat_open_input) \
  F(avformat_write_header) \
  F(avio_closep) \
  F(avio_open)
#define PLUMBLINE_SWSCALE_FUNCTIONS(F) \
  F(sws_freeContext) \
  F(sws_getCoefficients) \
  F(sws_getContext) \
  F(sws_scale) \
  F(sws_setColorspaceDetails)
// clang-format on

// The table of those functions. Immutable once loaded: any thread.
struct FfmpegLibrary {
#define PLUMBLINE_DECLARE(name) decltype(&::name) name = nullptr;
  PLUMBLINE_AVUTIL_FUNCTIONS(PLUMBLINE_DECLARE)
  PLUMBLINE_AVCODEC_FUNCTIONS(PLUMBLINE_DECLARE)
  PLUMBLINE_AVFORMAT_FUNCTIONS(PLUMBLINE_DECLARE)
  PLUMBLINE_SWSCALE_FUNCTIONS(PLUMBLINE_DECLARE)
#undef PLUMBLINE_DECLARE

  // Loads the libraries once a process, of the major versions that the worker was built with: other
  // ones lay out their structures differently. UNAVAILABLE, naming the library or the encoder that
  // is not there.
  static absl::StatusOr<const FfmpegLibrary*> Load();

  // OK if `result`, of one of the functions, is not negative. Otherwise an error of the given code:
  // "WHAT: what FFmpeg says of it".
  absl::Status Check(int result, absl::string_view what,
                     absl::StatusCode code = absl::StatusCode::kInternal) const;
};

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_FFMPEG_LIBRARY_H_
