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

CheckpointCache::Key CheckpointCache::KeyOf(const std::string& spec) const {
  Key key{spec, ""};
  if (absl::StartsWith(spec, "synthetic:")) return key;
  // What is wrong with the path, whoever opens it says.
  const absl::StatusOr<std::string> folder = ResolveUnderRoots(spec, roots_);
  if (folder.ok()) key.fingerprint = Fingerprint(*folder);
  return key;
}

absl::StatusOr<std::shared_ptr<const h3::WeightSource>> CheckpointCache::Open(
    const std::string& spec) {
  Key key = KeyOf(spec);
  if (source_ != nullptr && !key.fingerprint.empty() && key == source_key_) return source_;
  source_ = nullptr;  // Not two at once.
  PLUMBLINE_ASSIGN_OR_RETURN(source_, h3::OpenCheckpoint(spec, roots_));
  source_key_ = std::move(key);
  return source_;
}

absl::StatusOr<h3::DecoderWeights> CheckpointCache::OpenDecoders(const std::string& spec) {
  Key key = KeyOf(spec);
  if (decoders_.has_value() && !key.fingerprint.empty() && key == decoders_key_) return *decoders_;
  decoders_.reset();
  PLUMBLINE_ASSIGN_OR_RETURN(decoders_, h3::OpenDecoders(spec, roots_));
  decoders_key_ = std::move(key);
  return *decoders_;
}

}  // namespace plumbline::jobs
