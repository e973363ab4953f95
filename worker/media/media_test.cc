// Files of media: written, read again, compared; and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/media/compare_media.h"
#include "worker/media/media_file.h"
#include "worker/media/mp4_boxes.h"
#include "worker/media/mp4_reader.h"
#include "worker/media/mp4_writer.h"
#include "worker/media/tensor_media.h"
#include "worker/media/wav.h"

namespace plumbline::media {
namespace {

using ::testing::HasSubstr;

// Frames of smooth colours that change slowly, and a number that the whole depends on.
class PatternSource final : public FrameSource {
 public:
  explicit PatternSource(const VideoFormat& format, float brightness = 0)
      : format_(format), brightness_(brightness) {
    values_.resize(static_cast<size_t>(format.ValuesPerFrame()));
    bytes_.resize(values_.size());
  }

  const VideoFormat& format() const override { return format_; }
  bool HasValues() const override { return true; }
  absl::StatusOr<VideoFrame> Next() override {
    if (next_ == format_.frames) return absl::OutOfRangeError("behind the last frame");
    size_t i = 0;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = 0; y < format_.height; ++y) {
        for (int64_t x = 0; x < format_.width; ++x, ++i) {
          values_[i] = 0.5f +
                       0.3f * std::sin(0.05f * static_cast<float>((c + 1) * x + next_) +
                                       0.07f * static_cast<float>(y)) +
                       brightness_;
          bytes_[i] = ToByte(values_[i]);
        }
      }
    }
    VideoFrame frame;
    frame.index = next_++;
    frame.values = values_;
    frame.bytes = bytes_;
    return frame;
  }

 private:
  VideoFormat format_;
  float brightness_;
  int64_t next_ = 0;
  std::vector<float> values_;
  std::vector<uint8_t> bytes_;
};

AudioTrack Tones(int64_t samples) {
  AudioTrack track{32000, 2, {}};
  for (const double frequency : {440.0, 660.0}) {
    for (int64_t i = 0; i < samples; ++i) {
      track.samples.push_back(static_cast<float>(
          0.5 * std::sin(2 * M_PI * frequency * static_cast<double>(i) / 32000)));
    }
  }
  return track;
}

class MediaTest : public ::testing::Test {
 protected:
  MediaTest() : ffmpeg_(FfmpegLibrary::Load()) {
    std::string pattern = ::testing::TempDir() + "/media_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~MediaTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  std::string WriteFrames(absl::string_view name, const TensorMediaOptions& options,
                          FrameSource* video, const AudioTrack* audio) {
    absl::StatusOr<TensorMediaWriter> writer = TensorMediaWriter::Create(
        Path(name), options, video == nullptr ? nullptr : &video->format(), audio);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (int64_t i = 0; video != nullptr && i < video->format().frames; ++i) {
      const VideoFrame frame = *video->Next();
      const absl::Status added =
          writer->AddFrame(frame, options.decoded ? frame.values : absl::Span<const float>());
      EXPECT_TRUE(added.ok()) << added;
    }
    const absl::Status finished = writer->Finish();
    EXPECT_TRUE(finished.ok()) << finished;
    return Path(name);
  }

  absl::StatusOr<v1::QualityReport> Compare(const std::string& a, const std::string& b,
                                            const MediaComparisonOptions& options = {}) {
    PLUMBLINE_ASSIGN_OR_RETURN(Media subject, OpenMedia(ffmpeg_, a));
    PLUMBLINE_ASSIGN_OR_RETURN(Media reference, OpenMedia(ffmpeg_, b));
    PLUMBLINE_RETURN_IF_ERROR(CheckSameShape(subject, reference, "comparison.media.a"));
    ThreadPool threads(2);
    return CompareMedia(&subject, &reference, options, &threads);
  }

  absl::StatusOr<const FfmpegLibrary*> ffmpeg_;
  std::string folder_;
  const VideoFormat format_ = {29, 64, 96, 24};
};

TEST_F(MediaTest, Mp4IsNearWhatWasWrittenAndEqualOnRepeat) {
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  const AudioTrack tones = Tones(38667);
  for (const char* name : {"a.mp4", "b.mp4"}) {
    PatternSource video(format_);
    const absl::Status written = WriteMp4(*ffmpeg_, Path(name), &video, &tones);
    ASSERT_TRUE(written.ok()) << written;
  }
  const std::string bytes = *ReadFile(Path("a.mp4"), 1 << 24);
  EXPECT_EQ(bytes, *ReadFile(Path("b.mp4"), 1 << 24));
  // The index before the data, so that playing begins before all has come.
  EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));

  absl::StatusOr<Media> read = OpenMedia(ffmpeg_, Path("a.mp4"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->video->format().frames, 29);
  EXPECT_EQ(read->video->format().height, 64);
  EXPECT_EQ(read->video->format().width, 96);
  EXPECT_EQ(read->video->format().frames_per_second, 24);
  PatternSource video(format_);
  for (int64_t i = 0; i < 29; ++i) {
    const absl::StatusOr<VideoFrame> got = read->video->Next();
    ASSERT_TRUE(got.ok()) << got.status();
    const VideoFrame sent = *video.Next();
    double squared = 0;
    for (size_t k = 0; k < sent.bytes.size(); ++k) {
      squared += std::pow(double{got->bytes[k] * 1.0} - sent.bytes[k], 2);
    }
    EXPECT_LT(std::sqrt(squared / static_cast<double>(sent.bytes.size())), 3) << "frame " << i;
  }
  EXPECT_TRUE(absl::IsOutOfRange(read->video->Next().status()));

  // What comes back is in step with what went in.
  EXPECT_EQ(read->audio.sample_rate_hz, 32000);
  ASSERT_EQ(read->audio.channels, 2);
  ASSERT_GE(read->audio.SamplesPerChannel(), tones.SamplesPerChannel());
  AudioTrack cut = tones;
  cut.samples.clear();
  for (int64_t c = 0; c < 2; ++c) {
    const auto channel = read->audio.Channel(c).subspan(0, 38667);
    cut.samples.insert(cut.samples.end(), channel.begin(), channel.end());
  }
  Media sent_sound{nullptr, tones}, got_sound{nullptr, cut};
  ThreadPool threads(1);
  const auto report = CompareMedia(&got_sound, &sent_sound, {}, &threads);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LT(report->audio_relative_l2(), 0.05);
  EXPECT_EQ(report->audio_lag_samples(), 0);
}

TEST_F(MediaTest, Mp4OfWhatItCannotHoldIsRefused) {
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  const auto refused = [&](VideoFormat format, AudioTrack audio) {
    return std::string(
        Mp4Writer::Create(*ffmpeg_, Path("x.mp4"), format, &audio).status().message());
  };
  EXPECT_THAT(refused({0, 64, 64, 24}, {}), HasSubstr("there are none"));
  EXPECT_THAT(refused({1, 63, 64, 24}, {}), HasSubstr("64x63; accepted: an even height"));
  EXPECT_THAT(refused({1, 64, 64, 0}, {}), HasSubstr("fps: 0 is not possible"));
  EXPECT_THAT(refused({1, 64, 64, 24}, {12345, 1, {0, 0}}), HasSubstr("no rate of 12345 Hz"));
}

TEST_F(MediaTest, DamagedMp4sAreRefused) {
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  PatternSource video(format_);
  const AudioTrack tones = Tones(38667);
  ASSERT_TRUE(WriteMp4(*ffmpeg_, Path("a.mp4"), &video, &tones).ok());
  const std::string whole = *ReadFile(Path("a.mp4"), 1 << 24);
  for (const size_t size : {whole.size() - 1000, whole.size() / 2, size_t{100}, size_t{12}}) {
    ASSERT_TRUE(WriteFileAtomically(Path("cut.mp4"), whole.substr(0, size)).ok());
    const absl::Status status = Compare(Path("cut.mp4"), Path("a.mp4")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut.mp4: ")) << size;
    // As the reference, too: not that the other one has more sound.
    EXPECT_THAT(std::string(Compare(Path("a.mp4"), Path("cut.mp4")).status().message()),
                HasSubstr("cut.mp4: "))
        << size;
  }
  // What others put behind the last box, and a last box without a size.
  for (const std::string& more : {std::string(5, '\0'), std::string("tail: \377\377 of no box")}) {
    ASSERT_TRUE(WriteFileAtomically(Path("more.mp4"), whole + more).ok());
    EXPECT_TRUE(CheckMp4IsWhole(Path("more.mp4")).ok()) << more;
  }
  const std::string open = std::string("\0\0\0\0mdat", 8) + "to the end";
  ASSERT_TRUE(WriteFileAtomically(Path("open.mp4"), open).ok());
  EXPECT_TRUE(CheckMp4IsWhole(Path("open.mp4")).ok());
  const std::string huge("\0\0\0\1mdat\0\0\0\1\0\0\0\0", 16);
  ASSERT_TRUE(WriteFileAtomically(Path("huge.mp4"), huge).ok());
  EXPECT_THAT(std::string(CheckMp4IsWhole(Path("huge.mp4")).message()),
              HasSubstr("huge.mp4: is cut short: its box mdat has 4294967296 bytes, of which 16"));
}

TEST_F(MediaTest, AnMp4NeedsFfmpegAndNothingElseDoes) {
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  PatternSource video(format_);
  ASSERT_TRUE(WriteMp4(*ffmpeg_, Path("a.mp4"), &video, nullptr).ok());
  const absl::StatusOr<const FfmpegLibrary*> none = absl::UnavailableError("FFmpeg: not there");
  EXPECT_EQ(OpenMedia(none, Path("a.mp4")).status().message(),
            Path("a.mp4") + " is an MP4: FFmpeg: not there");
  ASSERT_TRUE(WriteWav(Path("a.wav"), Tones(100)).ok());
  EXPECT_TRUE(OpenMedia(none, Path("a.wav")).ok());
  // What is none of the formats is no damaged one either.
  for (const char* const text :
       {"", "short", "neither one nor the other of them, and long enough"}) {
    ASSERT_TRUE(WriteFileAtomically(Path("none"), text).ok());
    const absl::Status status = OpenMedia(none, Path("none")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("is no media file"));
  }
}

TEST_F(MediaTest, TensorsHoldExactlyWhatWasWritten) {
  const AudioTrack tones = Tones(1000);
  TensorMediaOptions options;
  options.decoded = true;
  PatternSource video(format_);
  const std::string path = WriteFrames("a.safetensors", options, &video, &tones);
  absl::StatusOr<Media> read = OpenMedia(ffmpeg_, path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->video->HasValues());
  EXPECT_EQ(read->audio.samples, tones.samples);
  EXPECT_EQ(read->audio.sample_rate_hz, 32000);
  PatternSource again(format_);
  for (int64_t i = 0; i < 29; ++i) {
    const VideoFrame got = *read->video->Next();
    const VideoFrame sent = *again.Next();
    EXPECT_EQ(got.values, sent.values);
    EXPECT_EQ(got.bytes, sent.bytes);
  }
  const auto digests = *DigestTensors(path);
  ASSERT_EQ(digests.size(), 3u);
  EXPECT_EQ(digests[0].name(), "decoded");
  EXPECT_THAT(digests[0].shape(), testing::ElementsAre(1, 3, 29, 64, 96));
  EXPECT_THAT(digests[1].shape(), testing::ElementsAre(29, 64, 96, 3));
  EXPECT_THAT(digests[2].shape(), testing::ElementsAre(2, 1000));
}

TEST_F(MediaTest, EightBitsAndKeptFramesAreTheSamePicture) {
  const AudioTrack tones = Tones(1000);
  TensorMediaOptions options;
  options.frames_u8 = true;
  PatternSource video(format_);
  const std::string eight_bits = WriteFrames("u8.safetensors", options, &video, &tones);
  for (const char* name : {"kept.safetensors", "again.safetensors"}) {
    absl::StatusOr<KeptFramesWriter> writer = KeptFramesWriter::Create(Path(name), format_, &tones);
    ASSERT_TRUE(writer.ok()) << writer.status();
    PatternSource frames(format_);
    for (int64_t i = 0; i < 29; ++i) ASSERT_TRUE(writer->AddFrame(*frames.Next()).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  EXPECT_EQ(*ReadFile(Path("kept.safetensors"), 1 << 24),
            *ReadFile(Path("again.safetensors"), 1 << 24));
  EXPECT_LT(std::filesystem::file_size(Path("kept.safetensors")),
            std::filesystem::file_size(eight_bits) / 2);
  const auto report = Compare(Path("kept.safetensors"), eight_bits);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->frames_bitwise_equal());
  EXPECT_TRUE(report->audio_bitwise_equal());
  EXPECT_DOUBLE_EQ(report->psnr_db(), 300);
  EXPECT_TRUE(report->passed());
  EXPECT_FALSE(std::filesystem::exists(Path("kept.safetensors.frames")));

  // The MP4 that is made of them later is the one that would have been made at once.
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  PatternSource at_once(format_);
  ASSERT_TRUE(WriteMp4(*ffmpeg_, Path("once.mp4"), &at_once, &tones).ok());
  absl::StatusOr<Media> kept = OpenMedia(ffmpeg_, Path("kept.safetensors"));
  ASSERT_TRUE(WriteMp4(*ffmpeg_, Path("later.mp4"), kept->video.get(), &kept->audio).ok());
  EXPECT_EQ(*ReadFile(Path("once.mp4"), 1 << 24), *ReadFile(Path("later.mp4"), 1 << 24));
}

TEST_F(MediaTest, TensorsOfOtherShapesAreRefused) {
  const std::vector<float> values(2 * 8 * 8 * 3);
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                         values.size() * sizeof(float));
  const auto refused = [&](const std::vector<TensorView>& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
    EXPECT_TRUE(WriteSafetensors(Path("x.safetensors"), tensors, metadata).ok());
    const absl::StatusOr<Media> media = OpenMedia(ffmpeg_, Path("x.safetensors"));
    if (!media.ok() || media->video == nullptr) return media.status().ToString();
    return media->video->Next().status().ToString();
  };
  const TensorView frames = {{"frames", DType::kF32, {2, 8, 8, 3}}, bytes};
  EXPECT_EQ(refused({frames}), "OK");
  EXPECT_THAT(refused({{{"pixels", DType::kF32, {2, 8, 8, 3}}, bytes}}),
              HasSubstr("neither `frames` nor `samples`"));
  EXPECT_THAT(
      refused({{{"frames", DType::kF32, {2, 3, 8, 8}}, bytes}}),
      HasSubstr("frames: F32 (2, 3, 8, 8); accepted: F32 or U8 (frames, height, width, 3)"));
  EXPECT_THAT(refused({{{"samples", DType::kF32, {3, 128}}, bytes}}),
              HasSubstr("samples: F32 (3, 128); accepted: F32 (1 or 2 channels"));
  EXPECT_THAT(refused({frames}, {{"fps", "-1"}}), HasSubstr("metadata fps: \"-1\""));
  EXPECT_THAT(refused({frames}, {{"fps", "nan"}}), HasSubstr("metadata fps: \"nan\""));
  EXPECT_THAT(refused({{{"samples", DType::kF32, {2, 192}}, bytes}}, {{"sampling_rate", "1e9"}}),
              HasSubstr("metadata sampling_rate"));

  const std::vector<int64_t> ends = {8, 4};
  const auto ends_bytes = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(ends.data()), 16);
  const TensorView kept = {{"frames.zstd", DType::kU8, {8}}, bytes.subspan(0, 8)};
  EXPECT_THAT(refused({kept}), HasSubstr("frames.zstd without frames.ends"));
  EXPECT_THAT(refused({kept, {{"frames.ends", DType::kI64, {2}}, ends_bytes}},
                      {{"height", "8"}, {"width", "8"}}),
              HasSubstr("frames.ends: 4 behind 8 of 8 bytes"));
  EXPECT_THAT(refused({kept, {{"frames.ends", DType::kI64, {1}}, ends_bytes.subspan(0, 8)}}),
              HasSubstr("1 frames of 0x0"));
  EXPECT_THAT(refused({kept, {{"frames.ends", DType::kI64, {1}}, ends_bytes.subspan(0, 8)}},
                      {{"height", "8"}, {"width", "8"}}),
              HasSubstr("frame 0 is no frame of 8x8"));
}

TEST_F(MediaTest, OtherShapesAreRefusedBeforeAnyNumber) {
  PatternSource video(format_), shorter({28, 64, 96, 24}), wider({29, 64, 98, 24}),
      slower({29, 64, 96, 12});
  const AudioTrack tones = Tones(1000), longer = Tones(1001);
  AudioTrack mono = {32000, 1, std::vector<float>(1000)};
  const std::string a = WriteFrames("a.safetensors", {}, &video, &tones);
  const auto refused = [&](FrameSource* frames, const AudioTrack* sound) {
    const absl::Status status =
        Compare(WriteFrames("b.safetensors", {}, frames, sound), a).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(GetReason(status), "SHAPE_DIFFERS");
    return std::string(status.message());
  };
  EXPECT_EQ(refused(&shorter, &tones),
            "comparison.media.a: has 28 frames of 96x64 at 24 a second; accepted: 29 frames of "
            "96x64 at 24 a second, as the reference");
  EXPECT_THAT(refused(&wider, &tones), HasSubstr("29 frames of 98x64"));
  EXPECT_THAT(refused(&slower, &tones), HasSubstr("at 12 a second"));
  EXPECT_THAT(refused(nullptr, &tones), HasSubstr("has no picture"));
  PatternSource again(format_), once_more(format_), last(format_);
  EXPECT_THAT(refused(&again, &longer), HasSubstr("has 1001 samples of 2 channels at 32000 Hz"));
  EXPECT_THAT(refused(&once_more, &mono), HasSubstr("has 1000 samples of 1 channels"));
  EXPECT_THAT(refused(&last, nullptr), HasSubstr("has no sound"));
}

TEST_F(MediaTest, BoundsAreGates) {
  const AudioTrack tones = Tones(1000);
  PatternSource video(format_), brighter(format_, 0.001f), much_brighter(format_, 0.1f);
  const std::string a = WriteFrames("a.safetensors", {}, &video, &tones);
  const std::string b = WriteFrames("b.safetensors", {}, &brighter, &tones);
  const std::string c = WriteFrames("c.safetensors", {}, &much_brighter, &tones);
  const auto near = Compare(b, a);
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_TRUE(near->passed());
  EXPECT_EQ(near->gates_size(), 5);
  EXPECT_EQ(JudgeQuality(*near, "b").outcome(), v1::OUTCOME_PASSED);
  const auto far = Compare(c, a);
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_FALSE(far->passed());
  const v1::Verdict verdict = JudgeQuality(*far, "seed 1");
  EXPECT_EQ(verdict.first_failure().gate(), "psnr");
  EXPECT_EQ(verdict.sentence(), "FAILED: seed 1: first failure psnr (20 where 30 is allowed).");
  MediaComparisonOptions lenient;
  lenient.bounds.set_psnr_db_min(10);
  lenient.bounds.set_ssim_min(0);
  EXPECT_TRUE(Compare(c, a, lenient)->passed());
}

TEST_F(MediaTest, NotANumberFailsAndIsNamed) {
  const AudioTrack tones = Tones(1000);
  PatternSource video(format_), with_nan(format_, std::numeric_limits<float>::quiet_NaN());
  const std::string a = WriteFrames("a.safetensors", {}, &video, &tones);
  const std::string b = WriteFrames("b.safetensors", {}, &with_nan, &tones);
  const auto report = Compare(b, a);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->first_nonfinite_frame(), 0);
  EXPECT_EQ(JudgeQuality(*report, "b").sentence(),
            "FAILED: b: first failure frame 0 is not finite.");
}

TEST_F(MediaTest, TheDifferenceIsShownAboutGrey) {
  ASSERT_TRUE(ffmpeg_.ok()) << ffmpeg_.status();
  const AudioTrack tones = Tones(1000);
  PatternSource video(format_), brighter(format_, 0.05f);
  const std::string a = WriteFrames("a.safetensors", {}, &video, &tones);
  const std::string b = WriteFrames("b.safetensors", {}, &brighter, &tones);
  MediaComparisonOptions options;
  options.difference_path = Path("difference.mp4");
  options.ffmpeg = *ffmpeg_;
  ASSERT_TRUE(Compare(b, a, options).ok());
  absl::StatusOr<Media> shown = OpenMedia(ffmpeg_, Path("difference.mp4"));
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->video->format().frames, 29);
  const VideoFrame frame = *shown->video->Next();
  EXPECT_NEAR(frame.bytes[3000], 255 * (0.5 + 4 * 0.05), 4);
}

}  // namespace
}  // namespace plumbline::media
