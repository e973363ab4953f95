// How many frames a second are compared: a pair of released-size videos (float32, 1344x768) with
// their sound, from files, on two threads; beside the time that reading both files takes, and
// one thread alone. Usage: compare_bench [FOLDER [FRAMES]]
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mapped_file.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/media/compare_media.h"
#include "worker/media/media_file.h"

namespace plumbline::media {
namespace {

constexpr int64_t kHeight = 768;
constexpr int64_t kWidth = 1344;

absl::Status WriteVideo(const std::string& path, int64_t frames, float error) {
  const VideoFormat format = {frames, kHeight, kWidth, 24};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(0, 1);
  AudioTrack audio{32000, 2, std::vector<float>(static_cast<size_t>(2 * frames * 32000 / 24))};
  for (float& sample : audio.samples) sample = value(random) - 0.5f + error;
  absl::StatusOr<TensorMediaWriter> writer = TensorMediaWriter::Create(path, {}, &format, &audio);
  if (!writer.ok()) return writer.status();
  std::vector<float> values(static_cast<size_t>(format.ValuesPerFrame()));
  for (float& each : values) each = value(random);
  for (int64_t i = 0; i < frames; ++i) {
    // Each frame another, and none worth the time of so many random numbers.
    std::rotate(values.begin(), values.begin() + 977, values.end());
    values[static_cast<size_t>(i)] += error;
    VideoFrame frame;
    frame.index = i;
    frame.values = values;
    if (const absl::Status added = writer->AddFrame(frame); !added.ok()) return added;
  }
  return writer->Finish();
}

// Seconds to look at every byte of both files, as a comparison must.
double ReadSeconds(const std::string& a, const std::string& b) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<MappedFile> first = MappedFile::Open(a);
  const absl::StatusOr<MappedFile> second = MappedFile::Open(b);
  std::vector<uint8_t> part(16 << 20);
  uint64_t sum = 0;
  for (const MappedFile* file : {&*first, &*second}) {
    for (size_t offset = 0; offset < file->bytes().size(); offset += part.size()) {
      const absl::Span<const uint8_t> bytes = file->bytes().subspan(offset, part.size());
      std::memcpy(part.data(), bytes.data(), bytes.size());
      sum += part[0];
      ForgetMappedBytes(bytes);
    }
  }
  return absl::ToDoubleSeconds(absl::Now() - start) + (sum == 0 ? 1e-12 : 0);
}

int Run(const std::string& folder, int64_t frames) {
  const std::string a = absl::StrCat(folder, "/compare_bench_a.safetensors");
  const std::string b = absl::StrCat(folder, "/compare_bench_b.safetensors");
  for (const auto& [path, error] : {std::pair(a, 0.0f), std::pair(b, 0.01f)}) {
    if (const absl::Status written = WriteVideo(path, frames, error); !written.ok()) {
      std::fprintf(stderr, "%s\n", written.ToString().c_str());
      return 1;
    }
  }
  const double reading = ReadSeconds(a, b);
  for (const int count : {1, 2}) {
    ThreadPool threads(count);
    const absl::StatusOr<const FfmpegLibrary*> none = absl::UnavailableError("");
    const absl::Time start = absl::Now();
    absl::StatusOr<Media> subject = OpenMedia(none, a);
    absl::StatusOr<Media> reference = OpenMedia(none, b);
    const auto report = CompareMedia(&*subject, &*reference, {}, &threads);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (!report.ok()) return 1;
    std::printf("%d thread%s  %6.1f frames a second of %ldx%ld, %.2f s for %ld, %.1f x reading\n",
                count, count == 1 ? " " : "s", static_cast<double>(frames) / seconds, kWidth,
                kHeight, seconds, frames, seconds / reading);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("at most %ld MB resident; the files have %ld MB each\n", usage.ru_maxrss / 1024,
              frames * kHeight * kWidth * 12 >> 20);
  std::remove(a.c_str());
  std::remove(b.c_str());
  return 0;
}

}  // namespace
}  // namespace plumbline::media

int main(int argc, char** argv) {
  int64_t frames = 124;
  if (argc > 2 && !absl::SimpleAtoi(argv[2], &frames)) return 2;
  return plumbline::media::Run(argc > 1 ? argv[1] : "/tmp", frames);
}
