#include "worker/steps/blob_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/sha256.h"

namespace plumbline::steps {
namespace {

namespace fs = std::filesystem;

// Digests come from the coordinator; a file name is made of nothing else.
bool IsDigest(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

}  // namespace

std::string BlobCache::PathOf(absl::string_view sha256) const {
  return absl::StrCat(folder_, "/", sha256);
}

bool BlobCache::Contains(absl::string_view sha256) const {
  std::error_code error;
  return IsDigest(sha256) && fs::exists(PathOf(sha256), error);
}

std::optional<std::string> BlobCache::Get(absl::string_view sha256, int64_t size_bytes) {
  if (!IsDigest(sha256) || size_bytes < 0) return std::nullopt;
  const std::string path = PathOf(sha256);
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<std::string> bytes = ReadFile(path, static_cast<size_t>(size_bytes));
  std::error_code error;
  if (bytes.ok() && Sha256Hex(*bytes) == sha256) {
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return *std::move(bytes);
  }
  fs::remove(path, error);
  return std::nullopt;
}

void BlobCache::Put(absl::string_view sha256, absl::string_view bytes) {
  if (!IsDigest(sha256) || static_cast<int64_t>(bytes.size()) > max_bytes_) return;
  absl::MutexLock lock(&mutex_);
  if (Contains(sha256)) return;
  if (const absl::Status status = WriteFileAtomically(PathOf(sha256), bytes); !status.ok()) {
    Log(LogLevel::kWarning, "step not cached", {{"error", status.ToString()}});
    return;
  }
  Trim();
}

void BlobCache::Trim() {
  struct File {
    fs::file_time_type used;
    int64_t size_bytes;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total_bytes = 0;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    // Another process may just have removed it.
    std::error_code gone;
    const int64_t size_bytes = static_cast<int64_t>(at->file_size(gone));
    if (gone) continue;
    files.push_back({at->last_write_time(gone), size_bytes, at->path()});
    total_bytes += size_bytes;
  }
  if (total_bytes <= max_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total_bytes <= max_bytes_) break;
    if (fs::remove(file.path, error)) total_bytes -= file.size_bytes;
  }
}

}  // namespace plumbline::steps
