#ifndef PLUMBLINE_SERVER_STORE_BACKUPS_H_
#define PLUMBLINE_SERVER_STORE_BACKUPS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "server/store/store.h"

namespace plumbline::server {

// Backups of a store in a folder of their own, with RocksDB's backup engine: consistent, made while
// the store is in use, and files that two backups have in common are kept once. Any thread may
// call; calls block on the disk.
class Backups {
 public:
  // `store` must outlive it. The folder is made when it is needed.
  Backups(Store* store, std::string folder) : store_(store), folder_(std::move(folder)) {}

  // Everything that was acknowledged before is in it.
  absl::StatusOr<v1::BackupResponse> Create() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes backup `backup_id` of `folder` (0: the newest) to `store_path`, where there must be no
  // store. Every file's checksum is checked. NOT_FOUND if there is no such backup.
  static absl::Status Restore(const std::string& folder, int64_t backup_id,
                              const std::string& store_path);

 private:
  Store* const store_;
  const std::string folder_;
  absl::Mutex mutex_;  // One backup at a time.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_BACKUPS_H_
