#include "worker/media/mp4_reader.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/media/ffmpeg_objects.h"
#include "worker/media/limits.h"
#include "worker/media/mp4_boxes.h"

namespace plumbline::media {
namespace {

// One stream of a file, decoded.
class Stream {
 public:
  Stream(const FfmpegLibrary* ffmpeg, std::string path)
      : ffmpeg_(*ffmpeg),
        path_(std::move(path)),
        input_(nullptr, InputDeleter{ffmpeg}),
        decoder_(nullptr, ContextDeleter{ffmpeg}),
        packet_(ffmpeg->av_packet_alloc(), PacketDeleter{ffmpeg}),
        frame_(ffmpeg->av_frame_alloc(), FrameDeleter{ffmpeg}) {}

  // Whether the file has one of that kind.
  absl::StatusOr<bool> Open(AVMediaType kind, AVCodecID codec, absl::string_view codec_name) {
    if (packet_ == nullptr || frame_ == nullptr) {
      return absl::ResourceExhaustedError("FFmpeg: out of memory");
    }
    // FFmpeg makes a short soundtrack of what is left of one.
    PLUMBLINE_RETURN_IF_ERROR(CheckMp4IsWhole(path_));
    AVDictionary* options = nullptr;
    ffmpeg_.av_dict_set(&options, "format_whitelist", "mov,mp4,m4a,3gp,3g2,mj2", 0);
    ffmpeg_.av_dict_set(&options, "protocol_whitelist", "file", 0);
    AVFormatContext* input = nullptr;
    const int opened = ffmpeg_.avformat_open_input(&input, absl::StrCat("file:", path_).c_str(),
                                                   nullptr, &options);
    ffmpeg_.av_dict_free(&options);
    PLUMBLINE_RETURN_IF_ERROR(Check(opened));
    input_.reset(input);
    for (unsigned i = 0; i < input_->nb_streams; ++i) {
      if (input_->streams[i]->codecpar->codec_type == kind && index_ < 0) {
        index_ = static_cast<int>(i);
      } else {
        input_->streams[i]->discard = AVDISCARD_ALL;
      }
    }
    if (index_ < 0) return false;
    if (stream().codecpar->codec_id != codec) {
      return Bad(absl::StrCat("its ", kind == AVMEDIA_TYPE_VIDEO ? "picture" : "sound", " is not ",
                              codec_name));
    }
    const AVCodec* const decoder = ffmpeg_.avcodec_find_decoder(codec);
    if (decoder == nullptr) {
      return absl::UnavailableError(absl::StrCat("FFmpeg has no decoder of ", codec_name));
    }
    decoder_.reset(ffmpeg_.avcodec_alloc_context3(decoder));
    PLUMBLINE_RETURN_IF_ERROR(
        Check(ffmpeg_.avcodec_parameters_to_context(decoder_.get(), stream().codecpar)));
    decoder_->thread_count = 1;
    decoder_->pkt_timebase = stream().time_base;
    decoder_->err_recognition = AV_EF_EXPLODE;
    PLUMBLINE_RETURN_IF_ERROR(Check(ffmpeg_.avcodec_open2(decoder_.get(), decoder, nullptr)));
    return true;
  }

  // The next one, valid until the next call; null at the end.
  absl::StatusOr<AVFrame*> Next() {
    while (true) {
      ffmpeg_.av_frame_unref(frame_.get());
      const int received = ffmpeg_.avcodec_receive_frame(decoder_.get(), frame_.get());
      if (received >= 0) return frame_.get();
      if (received == AVERROR_EOF) return nullptr;
      if (received != AVERROR(EAGAIN)) return Check(received);
      const int read = ReadPacket();
      if (read == AVERROR_EOF) {
        PLUMBLINE_RETURN_IF_ERROR(Check(ffmpeg_.avcodec_send_packet(decoder_.get(), nullptr)));
        continue;
      }
      PLUMBLINE_RETURN_IF_ERROR(Check(read));
      const int sent = ffmpeg_.avcodec_send_packet(decoder_.get(), packet_.get());
      ffmpeg_.av_packet_unref(packet_.get());
      PLUMBLINE_RETURN_IF_ERROR(Check(sent));
    }
  }

  const AVStream& stream() const { return *input_->streams[index_]; }

  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
  }

 private:
  int ReadPacket() {
    while (true) {
      const int read = ffmpeg_.av_read_frame(input_.get(), packet_.get());
      if (read < 0 || packet_->stream_index == index_) return read;
      ffmpeg_.av_packet_unref(packet_.get());
    }
  }

  absl::Status Check(int result) const {
    return ffmpeg_.Check(result, path_, absl::StatusCode::kInvalidArgument);
  }

  const FfmpegLibrary& ffmpeg_;
  const std::string path_;
  InputPointer input_;
  ContextPointer decoder_;
  PacketPointer packet_;
  FramePointer frame_;
  int index_ = -1;
};

class Mp4Source final : public FrameSource {
 public:
  Mp4Source(const FfmpegLibrary* ffmpeg, const std::string& path)
      : ffmpeg_(*ffmpeg), stream_(ffmpeg, path), to_rgb_(nullptr, ScalerDeleter{ffmpeg}) {}

  absl::StatusOr<bool> Open() {
    PLUMBLINE_ASSIGN_OR_RETURN(const bool found,
                               stream_.Open(AVMEDIA_TYPE_VIDEO, AV_CODEC_ID_H264, "H.264"));
    if (!found) return false;
    const AVStream& stream = stream_.stream();
    format_.frames = stream.nb_frames;
    format_.height = stream.codecpar->height;
    format_.width = stream.codecpar->width;
    if (stream.avg_frame_rate.den > 0) {
      format_.frames_per_second =
          static_cast<double>(stream.avg_frame_rate.num) / stream.avg_frame_rate.den;
    }
    if (format_.frames < 1) return stream_.Bad("its index lists no frames");
    if (!IsReadableFrameSize(format_.height, format_.width)) {
      return stream_.Bad(absl::StrCat("frames of ", format_.width, "x", format_.height,
                                      "; accepted: sides of 1 to ", kMaxFrameSide, ", at most ",
                                      kMaxFramePixels, " pixels"));
    }
    bytes_.resize(static_cast<size_t>(format_.ValuesPerFrame()));
    return true;
  }

  const VideoFormat& format() const override { return format_; }
  bool HasValues() const override { return false; }

  absl::StatusOr<VideoFrame> Next() override {
    if (next_ == format_.frames) return absl::OutOfRangeError("behind the last frame");
    PLUMBLINE_ASSIGN_OR_RETURN(const AVFrame* const decoded, stream_.Next());
    if (decoded == nullptr) {
      return stream_.Bad(absl::StrCat("it ends behind ", next_, " of ", format_.frames, " frames"));
    }
    if (decoded->width != format_.width || decoded->height != format_.height) {
      return stream_.Bad(absl::StrCat("frame ", next_, " has another size"));
    }
    PLUMBLINE_RETURN_IF_ERROR(PrepareScaler(*decoded));
    const auto plane = static_cast<size_t>(format_.height * format_.width);
    uint8_t* const planes[4] = {bytes_.data() + plane, bytes_.data() + 2 * plane, bytes_.data(),
                                nullptr};
    const int stride = static_cast<int>(format_.width);
    const int strides[4] = {stride, stride, stride, 0};
    ffmpeg_.sws_scale(to_rgb_.get(), decoded->data, decoded->linesize, 0, decoded->height, planes,
                      strides);
    VideoFrame frame;
    frame.index = next_++;
    frame.bytes = bytes_;
    return frame;
  }

 private:
  absl::Status PrepareScaler(const AVFrame& decoded) {
    if (to_rgb_ != nullptr && decoded.format == pixel_format_) return absl::OkStatus();
    pixel_format_ = decoded.format;
    to_rgb_.reset(ffmpeg_.sws_getContext(
        decoded.width, decoded.height, static_cast<AVPixelFormat>(decoded.format), decoded.width,
        decoded.height, AV_PIX_FMT_GBRP,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT, nullptr, nullptr,
        nullptr));
    if (to_rgb_ == nullptr) return stream_.Bad("its pixels are in a format that is not read");
    const int matrix =
        decoded.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_ITU709 : decoded.colorspace;
    const int* const coefficients = ffmpeg_.sws_getCoefficients(matrix);
    ffmpeg_.sws_setColorspaceDetails(to_rgb_.get(), coefficients,
                                     decoded.color_range == AVCOL_RANGE_JPEG ? 1 : 0, coefficients,
                                     /*dstRange=*/1, 0, 1 << 16, 1 << 16);
    return absl::OkStatus();
  }

  const FfmpegLibrary& ffmpeg_;
  Stream stream_;
  ScalerPointer to_rgb_;
  int pixel_format_ = AV_PIX_FMT_NONE;
  VideoFormat format_;
  std::vector<uint8_t> bytes_;
  int64_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FrameSource>> OpenMp4Video(const FfmpegLibrary* ffmpeg,
                                                          const std::string& path) {
  auto source = std::make_unique<Mp4Source>(ffmpeg, path);
  PLUMBLINE_ASSIGN_OR_RETURN(const bool found, source->Open());
  if (!found) return nullptr;
  return source;
}

absl::StatusOr<AudioTrack> ReadMp4Audio(const FfmpegLibrary* ffmpeg, const std::string& path) {
  Stream stream(ffmpeg, path);
  PLUMBLINE_ASSIGN_OR_RETURN(const bool found,
                             stream.Open(AVMEDIA_TYPE_AUDIO, AV_CODEC_ID_AAC, "AAC"));
  AudioTrack track;
  if (!found) return track;
  std::vector<std::vector<float>> channels;
  while (true) {
    PLUMBLINE_ASSIGN_OR_RETURN(const AVFrame* const decoded, stream.Next());
    if (decoded == nullptr) break;
    const int count = decoded->ch_layout.nb_channels;
    if (decoded->format != AV_SAMPLE_FMT_FLTP || count < 1 || count > 2 ||
        (!channels.empty() && static_cast<size_t>(count) != channels.size())) {
      return stream.Bad("its sound has neither one nor two channels throughout");
    }
    channels.resize(static_cast<size_t>(count));
    track.sample_rate_hz = decoded->sample_rate;
    for (int channel = 0; channel < count; ++channel) {
      const auto* const samples = reinterpret_cast<const float*>(decoded->data[channel]);
      channels[channel].insert(channels[channel].end(), samples, samples + decoded->nb_samples);
    }
    if (static_cast<int64_t>(channels[0].size()) > kMaxSamples) {
      return stream.Bad(absl::StrCat("more than ", kMaxSamples, " samples a channel"));
    }
  }
  track.channels = static_cast<int64_t>(channels.size());
  for (const std::vector<float>& channel : channels) {
    track.samples.insert(track.samples.end(), channel.begin(), channel.end());
  }
  return track;
}

}  // namespace plumbline::media
