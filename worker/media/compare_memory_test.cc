// A pair of videos is compared in the memory of a few frames, whatever its length.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/sanitizer.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/media/compare_media.h"
#include "worker/media/media_file.h"

namespace plumbline::media {
namespace {

// Of this process, in bytes: the most that was resident since the last reset.
int64_t HighWaterBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    int64_t kilobytes = 0;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    EXPECT_TRUE(absl::SimpleAtoi(words[words.size() - 2], &kilobytes)) << line;
    return kilobytes * 1024;
  }
  ADD_FAILURE() << "no VmHWM";
  return 0;
}

void ResetHighWater() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(CompareMemoryTest, StaysFarBelowTheFiles) {
  const VideoFormat format = {160, 256, 320, 24};
  const auto values = static_cast<size_t>(format.ValuesPerFrame());
  std::string paths[2];
  for (int side = 0; side < 2; ++side) {
    paths[side] = absl::StrCat(testing::TempDir(), "/memory-", side, ".safetensors");
    absl::StatusOr<TensorMediaWriter> writer =
        TensorMediaWriter::Create(paths[side], {}, &format, nullptr);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::vector<float> frame(values);
    for (int64_t i = 0; i < format.frames; ++i) {
      for (size_t k = 0; k < values; ++k) {
        frame[k] = static_cast<float>((k + static_cast<size_t>(i + side)) % 101) / 101.0f;
      }
      VideoFrame added;
      added.values = frame;
      ASSERT_TRUE(writer->AddFrame(added).ok());
    }
    ASSERT_TRUE(writer->Finish().ok());
  }
  const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(paths[0]));
  ASSERT_GT(file_bytes, 150 << 20);

  ResetHighWater();
  const int64_t before = HighWaterBytes();
  const absl::StatusOr<const FfmpegLibrary*> none = absl::UnavailableError("");
  absl::StatusOr<Media> subject = OpenMedia(none, paths[0]);
  absl::StatusOr<Media> reference = OpenMedia(none, paths[1]);
  ASSERT_TRUE(subject.ok() && reference.ok());
  ThreadPool threads(2);
  const absl::StatusOr<v1::QualityReport> report =
      CompareMedia(&*subject, &*reference, {}, &threads);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->frames_size(), 160);
  for (const std::string& path : paths) std::remove(path.c_str());
  PLUMBLINE_SKIP_UNDER_SANITIZERS("what was freed stays resident for a while");
  // A dozen frames, and what the process is made of.
  const int64_t frame_bytes = static_cast<int64_t>(values * sizeof(float));
  EXPECT_LT(HighWaterBytes() - before, 16 * frame_bytes + (8 << 20));
}

}  // namespace
}  // namespace plumbline::media
