// Owners of FFmpeg's objects. The library that made one must outlive it.
#ifndef PLUMBLINE_WORKER_MEDIA_FFMPEG_OBJECTS_H_
#define PLUMBLINE_WORKER_MEDIA_FFMPEG_OBJECTS_H_

#include <memory>

#include "worker/media/ffmpeg_library.h"

namespace plumbline::media {

struct ContextDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(AVCodecContext* context) const { ffmpeg->avcodec_free_context(&context); }
};
using ContextPointer = std::unique_ptr<AVCodecContext, ContextDeleter>;

struct FrameDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(AVFrame* frame) const { ffmpeg->av_frame_free(&frame); }
};
using FramePointer = std::unique_ptr<AVFrame, FrameDeleter>;

struct PacketDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(AVPacket* packet) const { ffmpeg->av_packet_free(&packet); }
};
using PacketPointer = std::unique_ptr<AVPacket, PacketDeleter>;

struct ScalerDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(SwsContext* scaler) const { ffmpeg->sws_freeContext(scaler); }
};
using ScalerPointer = std::unique_ptr<SwsContext, ScalerDeleter>;

struct InputDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(AVFormatContext* input) const { ffmpeg->avformat_close_input(&input); }
};
using InputPointer = std::unique_ptr<AVFormatContext, InputDeleter>;

// Also closes what it still writes to.
struct OutputDeleter {
  const FfmpegLibrary* ffmpeg;
  void operator()(AVFormatContext* output) const {
    if (output->pb != nullptr) ffmpeg->avio_closep(&output->pb);
    ffmpeg->avformat_free_context(output);
  }
};
using OutputPointer = std::unique_ptr<AVFormatContext, OutputDeleter>;

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_FFMPEG_OBJECTS_H_
