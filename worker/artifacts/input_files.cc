#include "worker/artifacts/input_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/mapped_file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/lease/backoff.h"
#include "worker/lease/retry.h"

namespace plumbline::worker {
namespace {

// A call brings one range, so that each has a short deadline and little is sent twice.
constexpr int64_t kRangeBytes = 8 << 20;
constexpr absl::Duration kRangeTimeout = absl::Minutes(1);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::Status NotAsStored(absl::string_view name) {
  return WithReason(
      absl::DataLossError(absl::StrCat(name, ": the bytes that arrived are not those stored")),
      "DIGEST_MISMATCH");
}

bool HasDigest(const std::string& path, const v1::Artifact& artifact) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  return file.ok() && static_cast<int64_t>(file->bytes().size()) == artifact.size_bytes() &&
         Sha256Hex(file->bytes()) == artifact.sha256();
}

}  // namespace

InputFiles::InputFiles(Coordinator* coordinator, Clock* clock, InputFilesOptions options)
    : coordinator_(coordinator), clock_(clock), options_(std::move(options)) {}

absl::StatusOr<std::string> InputFiles::Fetch(const v1::InputFile& file, absl::string_view field,
                                              Cancellation* cancellation) {
  absl::StatusOr<std::string> path;
  switch (file.source_case()) {
    case v1::InputFile::kArtifact:
      path = FetchArtifact(file.artifact(), cancellation);
      break;
    case v1::InputFile::kWorkerPath:
      path = ResolveUnderRoots(file.worker_path(), options_.roots);
      break;
    case v1::InputFile::SOURCE_NOT_SET:
      return FieldError(field, "names no file", "artifact, worker_path");
  }
  if (absl::IsInvalidArgument(path.status())) {
    return WithFieldViolations(AnnotateStatus(path.status(), field),
                               {{std::string(field), std::string(path.status().message())}});
  }
  return path;
}

absl::StatusOr<v1::Artifact> InputFiles::Read(const std::string& name, int64_t offset,
                                              int64_t length, Cancellation* cancellation,
                                              std::string* bytes) {
  v1::GetArtifactRequest request;
  request.set_name(name);
  request.set_offset(offset);
  request.set_length(length);
  const size_t size_before = bytes->size();
  return RetryWhileTransient(clock_, Backoff(kFirstRetry, kLongestRetry, options_.backoff_seed),
                             *cancellation, [&] {
                               bytes->resize(size_before);
                               return coordinator_->GetArtifact(request,
                                                                [bytes](absl::string_view chunk) {
                                                                  absl::StrAppend(bytes, chunk);
                                                                  return absl::OkStatus();
                                                                },
                                                                {kRangeTimeout, cancellation});
                             });
}

absl::StatusOr<std::string> InputFiles::FetchArtifact(const std::string& name,
                                                      Cancellation* cancellation) {
  // One byte, to learn what there is.
  std::string first_byte;
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Artifact artifact,
                             Read(name, 0, 1, cancellation, &first_byte));
  if (!IsSha256(artifact.sha256()) || artifact.size_bytes() < 0) return NotAsStored(name);
  const std::string path = absl::StrCat(options_.cache_folder, "/", artifact.sha256());
  if (HasDigest(path, artifact)) {
    std::error_code error;  // The time only orders what Trim() removes.
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);
    return path;
  }
  PLUMBLINE_RETURN_IF_ERROR(Download(artifact, path, cancellation));
  return path;
}

absl::Status InputFiles::Download(const v1::Artifact& artifact, const std::string& path,
                                  Cancellation* cancellation) {
  PLUMBLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Sha256 hash;
  std::string range;
  for (int64_t offset = 0; offset < artifact.size_bytes();) {
    const int64_t length = std::min(kRangeBytes, artifact.size_bytes() - offset);
    range.clear();
    PLUMBLINE_RETURN_IF_ERROR(Read(artifact.name(), offset, length, cancellation, &range).status());
    if (static_cast<int64_t>(range.size()) != length) return NotAsStored(artifact.name());
    hash.Update(range);
    PLUMBLINE_RETURN_IF_ERROR(file.WriteAt(
        static_cast<size_t>(offset),
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(range.data()), range.size())));
    offset += length;
  }
  if (hash.FinishHex() != artifact.sha256()) return NotAsStored(artifact.name());
  return file.Commit();
}

void InputFiles::Trim() {
  struct Entry {
    std::filesystem::file_time_type used;
    int64_t size_bytes;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  int64_t total_bytes = 0;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(options_.cache_folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code gone;
    Entry entry{at->last_write_time(gone), static_cast<int64_t>(at->file_size(gone)), at->path()};
    if (gone) continue;
    total_bytes += entry.size_bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total_bytes <= options_.max_cache_bytes) return;
    if (std::filesystem::remove(entry.path, error)) total_bytes -= entry.size_bytes;
  }
}

}  // namespace plumbline::worker
