#ifndef PLUMBLINE_WORKER_STEPS_BLOB_CACHE_H_
#define PLUMBLINE_WORKER_STEPS_BLOB_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::steps {

// Tensors of saved steps in a folder of this machine, each a file under its SHA-256. Whatever goes
// wrong with it is a miss: the coordinator has everything. Any thread may call.
class BlobCache {
 public:
  // `folder` exists and holds nothing else. Keeps at most `max_bytes`, dropping what was used
  // longest ago.
  BlobCache(std::string folder, int64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // Whether there is a file under this digest; its bytes may yet turn out to be others.
  bool Contains(absl::string_view sha256) const;
  // The bytes of this digest and length, checked. A file that holds others is removed.
  std::optional<std::string> Get(absl::string_view sha256, int64_t size_bytes);
  void Put(absl::string_view sha256, absl::string_view bytes);

 private:
  std::string PathOf(absl::string_view sha256) const;
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const int64_t max_bytes_;
  absl::Mutex mutex_;  // Held while files change.
};

}  // namespace plumbline::steps

#endif  // PLUMBLINE_WORKER_STEPS_BLOB_CACHE_H_
