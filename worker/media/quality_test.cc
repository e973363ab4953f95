// The figures of quality: against those that scikit-image and numpy gave for the captured pair
// (tests/golden/metrics_io.safetensors, golden.json), against the definition written out, and on
// damage that was done on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/safetensors.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/media/audio_meter.h"
#include "worker/media/video_meter.h"

namespace plumbline::media {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::IsNan;

struct Video {
  int64_t frames, height, width;
  std::vector<float> values;  // (frames, 3, height, width)

  int64_t FrameValues() const { return 3 * height * width; }
  float& At(int64_t frame, int64_t channel, int64_t y, int64_t x) {
    return values[static_cast<size_t>(((frame * 3 + channel) * height + y) * width + x)];
  }
  VideoFrame Frame(int64_t i) const {
    VideoFrame frame;
    frame.index = i;
    frame.values = absl::MakeConstSpan(values).subspan(static_cast<size_t>(i * FrameValues()),
                                                       static_cast<size_t>(FrameValues()));
    return frame;
  }
};

std::vector<float> Floats(const SafetensorsFile& file, const char* name) {
  const absl::Span<const uint8_t> bytes = *file.Bytes(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class Captured {
 public:
  Captured()
      : file_(*SafetensorsFile::Open("tests/golden/metrics_io.safetensors")),
        json_(nlohmann::json::parse(*ReadFile("tests/golden/golden.json", 1 << 20))["metrics"]) {}

  Video ReadVideo(const char* name) const {
    const std::vector<int64_t>& shape = file_.Find(name)->shape;  // (frames, height, width, 3)
    const std::vector<float> interleaved = Floats(file_, name);
    Video video{shape[0], shape[1], shape[2], std::vector<float>(interleaved.size())};
    size_t i = 0;
    for (int64_t f = 0; f < video.frames; ++f) {
      for (int64_t y = 0; y < video.height; ++y) {
        for (int64_t x = 0; x < video.width; ++x) {
          for (int64_t c = 0; c < 3; ++c) video.At(f, c, y, x) = interleaved[i++];
        }
      }
    }
    return video;
  }
  AudioTrack ReadAudio(const char* name) const { return {32000, 2, Floats(file_, name)}; }
  const nlohmann::json& metrics() const { return json_; }

 private:
  SafetensorsFile file_;
  nlohmann::json json_;
};

v1::QualityReport Measure(const Video& subject, const Video& reference, int threads = 1) {
  ThreadPool pool(threads);
  VideoMeter meter(reference.height, reference.width, &pool);
  for (int64_t i = 0; i < reference.frames; ++i) meter.Add(subject.Frame(i), reference.Frame(i));
  v1::QualityReport report;
  meter.Finish(&report);
  return report;
}

v1::QualityReport Measure(const AudioTrack& subject, const AudioTrack& reference) {
  v1::QualityReport report;
  MeasureAudio(subject, reference, &report);
  return report;
}

Video RandomVideo(int64_t frames, int64_t height, int64_t width, uint32_t seed) {
  Video video{frames, height, width, {}};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(0, 1);
  for (int64_t i = 0; i < frames * video.FrameValues(); ++i) video.values.push_back(value(random));
  return video;
}

AudioTrack RandomAudio(int64_t samples, uint32_t seed) {
  AudioTrack track{1000, 2, {}};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  for (int64_t i = 0; i < 2 * samples; ++i) track.samples.push_back(value(random));
  return track;
}

TEST(VideoMeterTest, CapturedPair) {
  const Captured captured;
  const v1::QualityReport report =
      Measure(captured.ReadVideo("video.b"), captured.ReadVideo("video.a"), 2);
  const nlohmann::json& expected = captured.metrics();
  EXPECT_NEAR(report.psnr_db(), expected["psnr_global"].get<double>(), 1e-9);
  EXPECT_NEAR(report.temporal_rmse(), expected["temporal_rmse"].get<double>(), 1e-9);
  double ssim = 0;
  ASSERT_EQ(report.frames_size(), 5);
  for (int i = 0; i < 5; ++i) {
    // scikit-image rounded the differences of pixels to float32 here, unlike in `psnr_global`.
    EXPECT_NEAR(report.frames(i).psnr_db(), expected["psnr_skimage_per_frame"][i].get<double>(),
                1e-8);
    EXPECT_NEAR(report.frames(i).ssim(), expected["ssim_skimage_per_frame"][i].get<double>(), 1e-6);
    ssim += expected["ssim_skimage_per_frame"][i].get<double>() / 5;
  }
  EXPECT_NEAR(report.ssim(), ssim, 1e-6);
  EXPECT_FALSE(report.frames_bitwise_equal());
  EXPECT_FALSE(report.has_first_nonfinite_frame());
}

TEST(AudioMeterTest, CapturedPair) {
  const Captured captured;
  const v1::QualityReport report =
      Measure(captured.ReadAudio("audio.b"), captured.ReadAudio("audio.a"));
  EXPECT_NEAR(report.audio_relative_l2(), captured.metrics()["audio_relative_l2"].get<double>(),
              1e-9);
  EXPECT_FALSE(report.audio_bitwise_equal());
  EXPECT_EQ(report.audio_lag_samples(), 0);
  ASSERT_EQ(report.channels_size(), 2);
  EXPECT_EQ(report.channels(0).seconds_size(), 1);
}

// SSIM of one frame as its definition reads, each window on its own.
double DefinedSsim(Video x, Video y) {
  double sum = 0;
  int64_t windows = 0;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t top = 0; top + 7 <= x.height; ++top) {
      for (int64_t left = 0; left + 7 <= x.width; ++left, ++windows) {
        double mx = 0, my = 0, vx = 0, vy = 0, cov = 0;
        for (int i = 0; i < 49; ++i) {
          mx += x.At(0, c, top + i / 7, left + i % 7) / 49.0;
          my += y.At(0, c, top + i / 7, left + i % 7) / 49.0;
        }
        for (int i = 0; i < 49; ++i) {
          const double dx = x.At(0, c, top + i / 7, left + i % 7) - mx;
          const double dy = y.At(0, c, top + i / 7, left + i % 7) - my;
          vx += dx * dx / 48;
          vy += dy * dy / 48;
          cov += dx * dy / 48;
        }
        sum += (2 * mx * my + 1e-4) * (2 * cov + 9e-4) /
               ((mx * mx + my * my + 1e-4) * (vx + vy + 9e-4));
      }
    }
  }
  return sum / static_cast<double>(windows);
}

TEST(VideoMeterTest, SsimOfAnySizeIsItsDefinition) {
  for (const auto& [height, width] :
       {std::pair(7, 7), std::pair(8, 31), std::pair(75, 9), std::pair(41, 50)}) {
    const auto seed = static_cast<uint32_t>(height);
    const Video a = RandomVideo(1, height, width, seed);
    Video b = RandomVideo(1, height, width, seed + 1);
    for (size_t i = 0; i < b.values.size(); ++i) {
      b.values[i] = 0.8f * a.values[i] + 0.2f * b.values[i];
    }
    EXPECT_NEAR(Measure(b, a).ssim(), DefinedSsim(b, a), 1e-12) << height << " by " << width;
  }
}

TEST(VideoMeterTest, EveryNumberOfThreadsGivesTheSameBytes) {
  const Video a = RandomVideo(3, 150, 70, 5);
  const Video b = RandomVideo(3, 150, 70, 6);
  const std::string one = Measure(b, a, 1).SerializeAsString();
  EXPECT_EQ(Measure(b, a, 2).SerializeAsString(), one);
  EXPECT_EQ(Measure(b, a, 5).SerializeAsString(), one);
}

TEST(VideoMeterTest, EqualVideos) {
  const Video a = RandomVideo(4, 40, 33, 7);
  const v1::QualityReport report = Measure(a, a);
  EXPECT_DOUBLE_EQ(report.psnr_db(), 300);
  EXPECT_EQ(report.ssim(), 1);
  EXPECT_EQ(report.temporal_rmse(), 0);
  EXPECT_TRUE(report.frames_bitwise_equal());
}

TEST(VideoMeterTest, AFlashOfOneFrameStandsOut) {
  const Video a = RandomVideo(9, 20, 20, 8);
  Video b = a;
  for (int64_t i = 4 * a.FrameValues(); i < 5 * a.FrameValues(); ++i) b.values[i] += 0.3f;
  const v1::QualityReport report = Measure(b, a);
  for (int i = 0; i < 9; ++i) {
    EXPECT_NEAR(report.frames(i).psnr_db(), i == 4 ? -20 * std::log10(0.3) : 300, 1e-4) << i;
    // It comes, and it goes.
    EXPECT_NEAR(report.frames(i).temporal_rmse(), i == 4 || i == 5 ? 0.3 : 0, 1e-6) << i;
  }
  EXPECT_NEAR(report.temporal_rmse(), 0.3 * std::sqrt(2.0 / 8), 1e-6);
  // The same error spread over all frames is no flicker.
  Video brighter = a;
  for (float& value : brighter.values) value += 0.1f;
  EXPECT_LT(Measure(brighter, a).temporal_rmse(), 1e-6);
}

TEST(VideoMeterTest, LocatesTheFirstFrameThatIsNotFinite) {
  const Video a = RandomVideo(5, 16, 16, 9);
  Video b = a;
  b.At(3, 2, 15, 15) = std::numeric_limits<float>::quiet_NaN();
  b.At(4, 0, 0, 0) = std::numeric_limits<float>::infinity();
  for (const v1::QualityReport& report : {Measure(b, a), Measure(a, b)}) {
    EXPECT_EQ(report.first_nonfinite_frame(), 3);
    EXPECT_THAT(report.psnr_db(), IsNan());
    EXPECT_THAT(report.ssim(), IsNan());
    EXPECT_THAT(report.temporal_rmse(), IsNan());
    EXPECT_DOUBLE_EQ(report.frames(2).psnr_db(), 300);
    EXPECT_THAT(report.frames(3).psnr_db(), IsNan());
    EXPECT_FALSE(report.frames_bitwise_equal());
  }
}

TEST(VideoMeterTest, EightBitsStandFor255ths) {
  const Video a = RandomVideo(2, 12, 10, 10);
  Video rounded = a;
  std::vector<uint8_t> bytes;
  for (float& value : rounded.values) {
    bytes.push_back(ToByte(value));
    value = static_cast<float>(bytes.back()) / 255.0f;
  }
  ThreadPool pool(1);
  VideoMeter by_bytes(12, 10, &pool);
  VideoMeter of_bytes_alone(12, 10, &pool);
  for (int64_t i = 0; i < 2; ++i) {
    VideoFrame frame;
    frame.bytes = absl::MakeConstSpan(bytes).subspan(i * a.FrameValues(), a.FrameValues());
    by_bytes.Add(frame, a.Frame(i));
    of_bytes_alone.Add(frame, frame);
  }
  v1::QualityReport report;
  by_bytes.Finish(&report);
  EXPECT_EQ(report.psnr_db(), Measure(rounded, a).psnr_db());
  v1::QualityReport equal;
  of_bytes_alone.Finish(&equal);
  EXPECT_TRUE(equal.frames_bitwise_equal());
  EXPECT_DOUBLE_EQ(equal.psnr_db(), 300);
}

TEST(AudioMeterTest, EqualSound) {
  const AudioTrack a = RandomAudio(2500, 11);
  const v1::QualityReport report = Measure(a, a);
  EXPECT_EQ(report.audio_relative_l2(), 0);
  EXPECT_TRUE(report.audio_bitwise_equal());
  EXPECT_EQ(report.audio_lag_samples(), 0);
  EXPECT_GT(report.audio_swapped_relative_l2(), 1);
  for (const auto& channel : report.channels()) EXPECT_THAT(channel.seconds(), Each(0.0));
}

TEST(AudioMeterTest, SwappedChannels) {
  const AudioTrack a = RandomAudio(2500, 12);
  AudioTrack b = a;
  std::rotate(b.samples.begin(), b.samples.begin() + 2500, b.samples.end());
  const v1::QualityReport report = Measure(b, a);
  EXPECT_GT(report.audio_relative_l2(), 1);
  EXPECT_EQ(report.audio_swapped_relative_l2(), 0);
  for (const auto& channel : report.channels()) EXPECT_GT(channel.relative_l2(), 1);
}

TEST(AudioMeterTest, ShiftedSound) {
  for (const int64_t shift : {1, 37, 999}) {
    const AudioTrack a = RandomAudio(2500, 13);
    AudioTrack b = a;
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t i = 0; i < 2500; ++i) {
        b.samples[c * 2500 + i] = i < shift ? 0 : a.samples[c * 2500 + i - shift];
      }
    }
    EXPECT_EQ(Measure(b, a).audio_lag_samples(), shift);
    EXPECT_EQ(Measure(a, b).audio_lag_samples(), -shift);
    EXPECT_GT(Measure(b, a).audio_relative_l2(), 1);
  }
}

TEST(AudioMeterTest, OneSilentSecond) {
  const AudioTrack a = RandomAudio(3500, 14);
  AudioTrack b = a;
  std::fill_n(b.samples.begin() + 1000, 1000, 0.0f);
  const v1::QualityReport report = Measure(b, a);
  EXPECT_THAT(report.channels(0).seconds(), testing::ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(report.channels(1).seconds(), Each(0.0));
  // Silent in the reference: the norm of what is there.
  double norm = 0;
  for (int i = 1000; i < 2000; ++i) norm += double{a.samples[i]} * a.samples[i];
  EXPECT_THAT(Measure(a, b).channels(0).seconds(1), DoubleNear(std::sqrt(norm), 1e-12));
}

TEST(AudioMeterTest, LocatesTheFirstSampleThatIsNotFinite) {
  const AudioTrack a = RandomAudio(2500, 15);
  AudioTrack b = a;
  b.samples[2500 + 1700] = std::numeric_limits<float>::quiet_NaN();
  b.samples[2200] = std::numeric_limits<float>::infinity();
  const v1::QualityReport report = Measure(b, a);
  EXPECT_EQ(report.first_nonfinite_sample(), 1700);
  EXPECT_THAT(report.audio_relative_l2(), IsNan());
  EXPECT_THAT(report.channels(1).max_abs(), IsNan());
  EXPECT_EQ(report.channels(1).seconds(0), 0);
}

}  // namespace
}  // namespace plumbline::media
