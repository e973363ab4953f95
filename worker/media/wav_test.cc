#include "worker/media/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"

namespace plumbline::media {
namespace {

std::string Path(const char* name) { return absl::StrCat(testing::TempDir(), "/", name); }

TEST(WavTest, IsExact) {
  AudioTrack track = {32000, 2, std::vector<float>(2 * 777)};
  for (size_t i = 0; i < track.samples.size(); ++i) {
    track.samples[i] = std::sin(0.01f * static_cast<float>(i));
  }
  track.samples[3] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(WriteWav(Path("a.wav"), track).ok());
  const absl::StatusOr<AudioTrack> read = ReadWav(Path("a.wav"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sample_rate_hz, 32000);
  EXPECT_EQ(read->channels, 2);
  ASSERT_EQ(read->samples.size(), track.samples.size());
  EXPECT_EQ(std::memcmp(read->samples.data(), track.samples.data(), track.samples.size() * 4), 0);
}

TEST(WavTest, OfIntegersAndDamagedOnes) {
  // 16 bits, one channel, 8000 Hz: written out by hand.
  const std::string head(
      "RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
      "LIST\1\0\0\0x\0",
      46);
  const std::string data("data\4\0\0\0\0\x80\0\x40", 12);
  ASSERT_TRUE(WriteFileAtomically(Path("a.wav"), head + data).ok());
  const absl::StatusOr<AudioTrack> read = ReadWav(Path("a.wav"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sample_rate_hz, 8000);
  EXPECT_THAT(read->samples, testing::ElementsAre(-1.0f, 0.5f));
  // Whatever it is cut to, it is refused and not read beyond its end.
  for (size_t size = 0; size < head.size() + data.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(Path("cut.wav"), (head + data).substr(0, size)).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(ReadWav(Path("cut.wav")).status())) << size;
  }
}

}  // namespace
}  // namespace plumbline::media
