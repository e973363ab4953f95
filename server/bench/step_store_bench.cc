// Step writes as a worker's come: 14.4 MB each, one after another, synced, at least 2 GB of them,
// against a plain loop in the same run that hashes, writes and fsyncs the same buffers. Then reads
// of a whole run.
//
//   step_store_bench [FOLDER]     a folder on the disk to measure; default: under $TMPDIR or /tmp
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/bench/table_row.h"
#include "server/store/step_store.h"
#include "server/store/step_upload.h"

namespace plumbline::server {
namespace {

// The velocities of a released-size step, float32.
constexpr int64_t kVideoBytes = int64_t{24} * 37 * 48 * 84 * 4 - 4;
constexpr int64_t kAudioBytes = int64_t{2} * 32 * 207 * 4;
constexpr int64_t kStepBytes = kVideoBytes + kAudioBytes;
constexpr int64_t kLeastBytes = int64_t{2} << 30;
constexpr int kStepsInARun = 49;
constexpr int64_t kChunkBytes = 1 << 20;
// The two sides take turns, so that a disk that changes its mind changes it for both.
constexpr int kStepsInATurn = 10;

struct StepData {
  v1::StepRecord record;
  std::string bytes;
  std::string sha256;
};

// Bytes that no other step has.
StepData MakeStep(const std::string& random, int number) {
  StepData step;
  step.bytes = random;
  std::memcpy(step.bytes.data(), &number, sizeof(number));
  std::memcpy(step.bytes.data() + kVideoBytes, &number, sizeof(number));
  step.record.set_index(number % kStepsInARun);
  v1::TensorDigest& input = *step.record.add_inputs();
  input.set_name("rows");
  input.set_sha256(Sha256Hex(absl::StrCat("rows ", number)));
  step.record.set_input_digest(Sha256Hex(absl::StrCat("input ", number)));
  const absl::string_view bytes = step.bytes;
  for (const auto& [name, part] : {std::pair("velocity.video", bytes.substr(0, kVideoBytes)),
                                   std::pair("velocity.audio", bytes.substr(kVideoBytes))}) {
    v1::TensorDigest& output = *step.record.add_outputs();
    output.set_name(name);
    output.set_dtype("F32");
    output.set_size_bytes(static_cast<int64_t>(part.size()));
    output.set_sha256(Sha256Hex(part));
  }
  step.sha256 = Sha256Hex(bytes);
  return step;
}

v1::PutStepRequest::Header HeaderOf(const StepData& step, int number) {
  v1::PutStepRequest::Header header;
  header.mutable_identity()->set_sha256(Sha256Hex(absl::StrCat("run ", number / kStepsInARun)));
  v1::IdentityPart& part = *header.mutable_identity()->add_parts();
  part.set_name("seed");
  part.set_value(absl::StrCat(number / kStepsInARun));
  header.set_total_steps(kStepsInARun);
  *header.mutable_record() = step.record;
  return header;
}

// Bytes that this process has made the kernel write, as the kernel counts them: to disks, and
// through write calls. -1 where it does not say.
int64_t IoCount(absl::string_view name) {
  // Not a regular file, for which ReadFile is.
  std::FILE* const file = std::fopen("/proc/self/io", "r");
  if (file == nullptr) return -1;
  char buffer[4096];
  const size_t size = std::fread(buffer, 1, sizeof(buffer), file);
  std::fclose(file);
  for (absl::string_view line : absl::StrSplit(absl::string_view(buffer, size), '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ": ") &&
        absl::SimpleAtoi(line, &count)) {
      return count;
    }
  }
  return -1;
}

absl::Status WritePlainly(const std::string& path, const std::string& bytes, std::string* sha256) {
  *sha256 = Sha256Hex(bytes);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return FileError(path, "open", errno);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written < 0) return FileError(path, "write", errno);
    done += static_cast<size_t>(written);
  }
  if (fsync(descriptor) != 0) return FileError(path, "fsync", errno);
  close(descriptor);
  return absl::OkStatus();
}

// As the network hands them over.
std::vector<std::string> ChunksOf(const StepData& step) {
  std::vector<std::string> chunks;
  for (size_t offset = 0; offset < step.bytes.size(); offset += kChunkBytes) {
    chunks.push_back(step.bytes.substr(offset, kChunkBytes));
  }
  return chunks;
}

absl::Status Put(StepStore* steps, const StepData& step, std::vector<std::string> chunks,
                 int number) {
  const v1::PutStepRequest::Header header = HeaderOf(step, number);
  PLUMBLINE_RETURN_IF_ERROR(CheckStepHeader(header));
  StepUpload upload(header);
  for (std::string& chunk : chunks) PLUMBLINE_RETURN_IF_ERROR(upload.Append(std::move(chunk)));
  v1::StreamTrailer trailer;
  trailer.set_size_bytes(kStepBytes);
  trailer.set_sha256(step.sha256);
  PLUMBLINE_RETURN_IF_ERROR(upload.Finish(trailer));
  NewStep put;
  put.task = {1, 0};
  put.fencing_token = 1;
  put.header = header;
  put.upload = &upload;
  return steps->PutStep(put, v1::AuditEvent()).status();
}

// Seconds, sorted.
void Print(const char* name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&seconds](double share) {
    return 1e3 * seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  std::printf(
      "%-28s median %6.1f ms a step, quartiles %.1f to %.1f, all %.1f to %.1f; %6.1f MB/s\n", name,
      at(0.5), at(0.25), at(0.75), at(0), at(1), static_cast<double>(kStepBytes) / 1e3 / at(0.5));
}

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

absl::Status Measure(const std::string& folder) {
  Clock* const clock = SystemClock();
  std::filesystem::create_directories(folder + "/plain");
  StoreOptions options;
  options.path = folder + "/store";
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::Open(options));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<StepStore> steps,
                             StepStore::Open(store.get(), {}));
  WriteSet grant;
  store::LeaseRecord lease;
  lease.set_fencing_token(1);
  grant.GrantLease({1, 0}, lease);
  PLUMBLINE_RETURN_IF_ERROR(store->CommitAndWait(&grant));

  std::mt19937_64 generator(1);
  std::string random(kStepBytes, '\0');
  for (size_t i = 0; i + 8 <= random.size(); i += 8) {
    const uint64_t value = generator();
    std::memcpy(random.data() + i, &value, 8);
  }
  const int count = static_cast<int>((kLeastBytes + kStepBytes - 1) / kStepBytes);
  std::vector<double> plain, stored;
  int64_t disk_bytes = 0;
  int64_t call_bytes = 0;
  for (int first = 0; first < count; first += kStepsInATurn) {
    const int end = std::min(count, first + kStepsInATurn);
    for (int i = first; i < end; ++i) {
      const StepData step = MakeStep(random, i);
      std::string sha256;
      const absl::Time start = clock->Now();
      PLUMBLINE_RETURN_IF_ERROR(
          WritePlainly(absl::StrCat(folder, "/plain/", i), step.bytes, &sha256));
      plain.push_back(absl::ToDoubleSeconds(clock->Now() - start));
      if (sha256 != step.sha256) return absl::InternalError("the plain loop hashed other bytes");
    }
    const int64_t disk_before = IoCount("write_bytes");
    const int64_t calls_before = IoCount("wchar");
    for (int i = first; i < end; ++i) {
      const StepData step = MakeStep(random, i);
      std::vector<std::string> chunks = ChunksOf(step);
      const absl::Time start = clock->Now();
      PLUMBLINE_RETURN_IF_ERROR(Put(steps.get(), step, std::move(chunks), i));
      stored.push_back(absl::ToDoubleSeconds(clock->Now() - start));
    }
    disk_bytes += IoCount("write_bytes") - disk_before;
    call_bytes += IoCount("wchar") - calls_before;
  }
  const double total = static_cast<double>(kStepBytes) * count;
  std::printf("%d steps of %.1f MB, %.2f GB\n", count, kStepBytes / 1e6, total / 1e9);
  Print("hash, write, fsync", plain);
  Print("step store", stored);
  const double share = 100 * Sum(plain) / Sum(stored);
  const double written = static_cast<double>(disk_bytes) / total;
  std::printf("step store / plain loop       %.0f %% of its speed\n", share);
  std::printf("bytes written per byte stored %.3f to the disk, %.3f in write calls\n", written,
              static_cast<double>(call_bytes) / total);
  PrintTableRow(3, "steps of 14.4 MB written one after another, synced",
                "at least 60 % of a plain loop, at most 1.1 bytes written per byte",
                absl::StrFormat("%.0f %%, %.3f bytes", share, written),
                share >= 60 && written <= 1.1);

  const absl::Time start = clock->Now();
  const std::string run = HeaderOf(MakeStep(random, 0), 0).identity().sha256();
  for (int i = 0; i < kStepsInARun - 1; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(steps->ReadStep(run, i).status());
  }
  std::printf("reading %d steps, digests checked: %.2f s\n", kStepsInARun - 1,
              absl::ToDoubleSeconds(clock->Now() - start));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> problems, steps->FindInconsistencies());
  return problems.empty() ? absl::OkStatus() : absl::InternalError(problems.front());
}

int Main(int argc, char** argv) {
  const char* const temporary = std::getenv("TMPDIR");
  std::string folder = argc > 1 ? argv[1] : temporary != nullptr ? temporary : "/tmp";
  absl::StrAppend(&folder, "/step_store_bench.", getpid());
  const absl::Status status = Measure(folder);
  std::filesystem::remove_all(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "step_store_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
