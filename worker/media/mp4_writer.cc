#include "worker/media/mp4_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/media/ffmpeg_objects.h"

namespace plumbline::media {
namespace {

// Near what the eye tells apart, and small enough to look at over a network.
constexpr char kConstantRateFactor[] = "16";
constexpr int64_t kAudioBitRate = 192000;
constexpr int kLargestRateTerm = 1001000;  // 24000/1001 and the like are exact.

class Writer final : public Mp4Writer {
 public:
  Writer(const FfmpegLibrary* ffmpeg, const VideoFormat& format, const AudioTrack* audio)
      : ffmpeg_(*ffmpeg),
        format_(format),
        audio_(audio != nullptr && audio->SamplesPerChannel() > 0 ? audio : nullptr),
        container_(nullptr, OutputDeleter{ffmpeg}),
        video_(nullptr, ContextDeleter{ffmpeg}),
        sound_(nullptr, ContextDeleter{ffmpeg}),
        picture_(ffmpeg->av_frame_alloc(), FrameDeleter{ffmpeg}),
        samples_(ffmpeg->av_frame_alloc(), FrameDeleter{ffmpeg}),
        packet_(ffmpeg->av_packet_alloc(), PacketDeleter{ffmpeg}),
        to_yuv_(nullptr, ScalerDeleter{ffmpeg}) {}

  absl::Status Open(const std::string& path) {
    if (picture_ == nullptr || samples_ == nullptr || packet_ == nullptr) return NoMemory();
    AVFormatContext* container = nullptr;
    PLUMBLINE_RETURN_IF_ERROR(ffmpeg_.Check(
        ffmpeg_.avformat_alloc_output_context2(&container, nullptr, "mp4", path.c_str()), path));
    container_.reset(container);
    container_->flags |= AVFMT_FLAG_BITEXACT;
    PLUMBLINE_RETURN_IF_ERROR(OpenVideo());
    if (audio_ != nullptr) PLUMBLINE_RETURN_IF_ERROR(OpenSound());
    PLUMBLINE_RETURN_IF_ERROR(
        ffmpeg_.Check(ffmpeg_.avio_open(&container_->pb, path.c_str(), AVIO_FLAG_WRITE), path));
    AVDictionary* options = nullptr;
    ffmpeg_.av_dict_set(&options, "movflags", "+faststart", 0);
    const int written = ffmpeg_.avformat_write_header(container_.get(), &options);
    ffmpeg_.av_dict_free(&options);
    return ffmpeg_.Check(written, path);
  }

  absl::Status AddFrame(absl::Span<const uint8_t> bytes) override {
    if (static_cast<int64_t>(bytes.size()) != format_.ValuesPerFrame()) {
      return absl::InvalidArgumentError(absl::StrCat("a frame of ", bytes.size(), " bytes; ",
                                                     format_.ValuesPerFrame(), " make one of ",
                                                     format_.width, "x", format_.height));
    }
    PLUMBLINE_RETURN_IF_ERROR(
        ffmpeg_.Check(ffmpeg_.av_frame_make_writable(picture_.get()), "video frame"));
    // swscale's planar RGB is green, blue, red.
    const auto plane = static_cast<size_t>(format_.height * format_.width);
    const uint8_t* const planes[4] = {bytes.data() + plane, bytes.data() + 2 * plane, bytes.data(),
                                      nullptr};
    const int stride = static_cast<int>(format_.width);
    const int strides[4] = {stride, stride, stride, 0};
    ffmpeg_.sws_scale(to_yuv_.get(), planes, strides, 0, static_cast<int>(format_.height),
                      picture_->data, picture_->linesize);
    picture_->pts = next_picture_++;
    PLUMBLINE_RETURN_IF_ERROR(Encode(video_.get(), picture_.get(), 0));
    return AddSoundUntil(static_cast<double>(next_picture_) / format_.frames_per_second);
  }

  absl::Status Finish() override {
    PLUMBLINE_RETURN_IF_ERROR(AddSoundUntil(HUGE_VAL));
    PLUMBLINE_RETURN_IF_ERROR(Encode(video_.get(), nullptr, 0));
    if (audio_ != nullptr) PLUMBLINE_RETURN_IF_ERROR(Encode(sound_.get(), nullptr, 1));
    PLUMBLINE_RETURN_IF_ERROR(
        ffmpeg_.Check(ffmpeg_.av_write_trailer(container_.get()), "end of the MP4"));
    return ffmpeg_.Check(ffmpeg_.avio_closep(&container_->pb), "end of the MP4");
  }

 private:
  static absl::Status NoMemory() { return absl::ResourceExhaustedError("FFmpeg: out of memory"); }

  absl::Status OpenVideo() {
    const AVCodec* const codec = ffmpeg_.avcodec_find_encoder_by_name("libx264");
    video_.reset(ffmpeg_.avcodec_alloc_context3(codec));
    AVStream* const stream = ffmpeg_.avformat_new_stream(container_.get(), nullptr);
    if (video_ == nullptr || stream == nullptr) return NoMemory();
    const AVRational rate = ffmpeg_.av_d2q(format_.frames_per_second, kLargestRateTerm);
    video_->width = static_cast<int>(format_.width);
    video_->height = static_cast<int>(format_.height);
    video_->pix_fmt = AV_PIX_FMT_YUV420P;
    video_->time_base = {rate.den, rate.num};
    video_->framerate = rate;
    video_->colorspace = AVCOL_SPC_BT709;
    video_->color_primaries = AVCOL_PRI_BT709;
    video_->color_trc = AVCOL_TRC_BT709;
    video_->color_range = AVCOL_RANGE_MPEG;
    video_->chroma_sample_location = AVCHROMA_LOC_LEFT;
    video_->thread_count = 1;
    video_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
    ffmpeg_.av_opt_set(video_->priv_data, "crf", kConstantRateFactor, 0);
    stream->time_base = video_->time_base;
    stream->avg_frame_rate = rate;
    PLUMBLINE_RETURN_IF_ERROR(OpenEncoder(codec, video_.get(), stream, "H.264"));

    // The exact conversion: rounded, not truncated, and the same on every processor.
    to_yuv_.reset(ffmpeg_.sws_getContext(
        video_->width, video_->height, AV_PIX_FMT_GBRP, video_->width, video_->height,
        AV_PIX_FMT_YUV420P, SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        nullptr, nullptr, nullptr));
    if (to_yuv_ == nullptr) return NoMemory();
    const int* const bt709 = ffmpeg_.sws_getCoefficients(SWS_CS_ITU709);
    PLUMBLINE_RETURN_IF_ERROR(
        ffmpeg_.Check(ffmpeg_.sws_setColorspaceDetails(to_yuv_.get(), bt709, /*srcRange=*/1, bt709,
                                                       /*dstRange=*/0, 0, 1 << 16, 1 << 16),
                      "BT.709"));
    picture_->format = video_->pix_fmt;
    picture_->width = video_->width;
    picture_->height = video_->height;
    return ffmpeg_.Check(ffmpeg_.av_frame_get_buffer(picture_.get(), 0), "video frame");
  }

  absl::Status OpenSound() {
    const AVCodec* const codec = ffmpeg_.avcodec_find_encoder_by_name("aac");
    bool has_rate = false;
    std::string rates;
    for (const int* rate = codec->supported_samplerates; rate != nullptr && *rate != 0; ++rate) {
      has_rate |= *rate == audio_->sample_rate_hz;
      absl::StrAppend(&rates, rates.empty() ? "" : ", ", *rate);
    }
    if (!has_rate) {
      return FieldError("sampling_rate",
                        absl::StrCat("AAC has no rate of ", audio_->sample_rate_hz, " Hz"), rates);
    }
    sound_.reset(ffmpeg_.avcodec_alloc_context3(codec));
    AVStream* const stream = ffmpeg_.avformat_new_stream(container_.get(), nullptr);
    if (sound_ == nullptr || stream == nullptr) return NoMemory();
    sound_->sample_fmt = AV_SAMPLE_FMT_FLTP;
    sound_->sample_rate = audio_->sample_rate_hz;
    sound_->bit_rate = kAudioBitRate;
    ffmpeg_.av_channel_layout_default(&sound_->ch_layout, static_cast<int>(audio_->channels));
    sound_->time_base = {1, audio_->sample_rate_hz};
    sound_->thread_count = 1;
    sound_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
    stream->time_base = sound_->time_base;
    PLUMBLINE_RETURN_IF_ERROR(OpenEncoder(codec, sound_.get(), stream, "AAC"));
    samples_->format = sound_->sample_fmt;
    samples_->sample_rate = sound_->sample_rate;
    samples_->nb_samples = sound_->frame_size;
    ffmpeg_.av_channel_layout_default(&samples_->ch_layout, static_cast<int>(audio_->channels));
    return ffmpeg_.Check(ffmpeg_.av_frame_get_buffer(samples_.get(), 0), "audio frame");
  }

  absl::Status OpenEncoder(const AVCodec* codec, AVCodecContext* context, AVStream* stream,
                           absl::string_view what) {
    PLUMBLINE_RETURN_IF_ERROR(ffmpeg_.Check(ffmpeg_.avcodec_open2(context, codec, nullptr), what));
    return ffmpeg_.Check(ffmpeg_.avcodec_parameters_from_context(stream->codecpar, context), what);
  }

  absl::Status AddSoundUntil(double seconds) {
    const int64_t total = audio_ == nullptr ? 0 : audio_->SamplesPerChannel();
    while (next_sample_ < total &&
           static_cast<double>(next_sample_) < seconds * audio_->sample_rate_hz) {
      PLUMBLINE_RETURN_IF_ERROR(
          ffmpeg_.Check(ffmpeg_.av_frame_make_writable(samples_.get()), "audio frame"));
      const int64_t count = std::min<int64_t>(sound_->frame_size, total - next_sample_);
      for (int64_t channel = 0; channel < audio_->channels; ++channel) {
        const absl::Span<const float> from = audio_->Channel(channel).subspan(
            static_cast<size_t>(next_sample_), static_cast<size_t>(count));
        // The encoder gives up where a sample is not finite; a picture of it is still worth having.
        std::transform(from.begin(), from.end(), reinterpret_cast<float*>(samples_->data[channel]),
                       [](float sample) { return std::isfinite(sample) ? sample : 0.0f; });
      }
      samples_->nb_samples = static_cast<int>(count);
      samples_->pts = next_sample_;
      next_sample_ += count;
      PLUMBLINE_RETURN_IF_ERROR(Encode(sound_.get(), samples_.get(), 1));
    }
    return absl::OkStatus();
  }

  // Null for `frame`: what the encoder still holds.
  absl::Status Encode(AVCodecContext* encoder, const AVFrame* frame, int stream) {
    PLUMBLINE_RETURN_IF_ERROR(ffmpeg_.Check(ffmpeg_.avcodec_send_frame(encoder, frame), "encoder"));
    while (true) {
      const int received = ffmpeg_.avcodec_receive_packet(encoder, packet_.get());
      if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return absl::OkStatus();
      PLUMBLINE_RETURN_IF_ERROR(ffmpeg_.Check(received, "encoder"));
      packet_->stream_index = stream;
      ffmpeg_.av_packet_rescale_ts(packet_.get(), encoder->time_base,
                                   container_->streams[stream]->time_base);
      PLUMBLINE_RETURN_IF_ERROR(ffmpeg_.Check(
          ffmpeg_.av_interleaved_write_frame(container_.get(), packet_.get()), "MP4"));
    }
  }

  const FfmpegLibrary& ffmpeg_;
  const VideoFormat format_;
  const AudioTrack* const audio_;  // Null: no sound.
  OutputPointer container_;
  ContextPointer video_;
  ContextPointer sound_;
  FramePointer picture_;
  FramePointer samples_;
  PacketPointer packet_;
  ScalerPointer to_yuv_;
  int64_t next_picture_ = 0;
  int64_t next_sample_ = 0;
};

absl::Status CheckFormat(const VideoFormat& format, const AudioTrack* audio) {
  if (format.frames < 1) return FieldError("frames", "there are none", "1 or more");
  if (format.height < 2 || format.width < 2 || format.height % 2 != 0 || format.width % 2 != 0) {
    return FieldError(
        "frames",
        absl::StrCat("H.264 in yuv420p has no size of ", format.width, "x", format.height),
        "an even height and width");
  }
  if (!std::isfinite(format.frames_per_second) || format.frames_per_second <= 0) {
    return FieldError("fps", absl::StrCat(format.frames_per_second, " is not possible"),
                      "more than 0");
  }
  if (audio != nullptr && audio->channels > 2) {
    return FieldError("samples", absl::StrCat(audio->channels, " channels"), "1 or 2 channels");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Mp4Writer>> Mp4Writer::Create(const FfmpegLibrary* ffmpeg,
                                                             const std::string& path,
                                                             const VideoFormat& format,
                                                             const AudioTrack* audio) {
  PLUMBLINE_RETURN_IF_ERROR(CheckFormat(format, audio));
  auto writer = std::make_unique<Writer>(ffmpeg, format, audio);
  PLUMBLINE_RETURN_IF_ERROR(writer->Open(path));
  return writer;
}

absl::Status WriteMp4(const FfmpegLibrary* ffmpeg, const std::string& path, FrameSource* video,
                      const AudioTrack* audio) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Mp4Writer> writer,
                             Mp4Writer::Create(ffmpeg, path, video->format(), audio));
  for (int64_t i = 0; i < video->format().frames; ++i) {
    PLUMBLINE_ASSIGN_OR_RETURN(const VideoFrame frame, video->Next());
    PLUMBLINE_RETURN_IF_ERROR(writer->AddFrame(frame.bytes));
  }
  return writer->Finish();
}

}  // namespace plumbline::media
