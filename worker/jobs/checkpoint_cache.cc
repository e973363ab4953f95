#include "worker/jobs/checkpoint_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/h3/checkpoint.h"

namespace plumbline::jobs {
namespace {

// More files than any checkpoint has: such a folder is opened anew each time.
constexpr size_t kMaxFiles = 4096;

// Which files lie under `folder`, and when each was changed last; "" if that cannot be told.
std::string Fingerprint(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    struct stat info;
    // Follows links: shards often are links into a store of blobs.
    if (stat(at->path().c_str(), &info) != 0) return "";
    files.push_back(absl::StrCat(at->path().string(), " ", info.st_dev, " ", info.st_ino, " ",
                                 info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec,
                                 " ", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec));
    if (files.size() > kMaxFiles) return "";
  }
  if (error) return "";
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const h3::WeightSource>> CheckpointCache::Open(
    const std::string& spec) {
  std::string fingerprint;
  if (!absl::StartsWith(spec, "synthetic:")) {
    // What is wrong with the path, OpenCheckpoint says.
    const absl::StatusOr<std::string> folder = ResolveUnderRoots(spec, roots_);
    if (folder.ok()) fingerprint = Fingerprint(*folder);
    if (source_ != nullptr && spec == spec_ && !fingerprint.empty() &&
        fingerprint == fingerprint_) {
      return source_;
    }
  }
  source_ = nullptr;  // Not two at once.
  PLUMBLINE_ASSIGN_OR_RETURN(source_, h3::OpenCheckpoint(spec, roots_));
  spec_ = spec;
  fingerprint_ = std::move(fingerprint);
  return source_;
}

}  // namespace plumbline::jobs
