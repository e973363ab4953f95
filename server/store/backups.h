#ifndef PLUMBLINE_SERVER_STORE_BACKUPS_H_
#define PLUMBLINE_SERVER_STORE_BACKUPS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "server/store/artifact_files.h"
#include "server/store/step_store.h"
#include "server/store/store.h"

namespace plumbline::server {

// Backups of a data folder in a folder of their own: the store with RocksDB's backup engine, and
// the artifacts' files beside it, in `artifacts`. Consistent, made while both are in use, and what
// two backups have in common is kept once. Any thread may call; calls block on the disk.
class Backups {
 public:
  // `store`, `steps` and `files` must outlive it. The folder is made when it is needed.
  Backups(Store* store, StepStore* steps, ArtifactFiles* files, std::string folder)
      : store_(store), steps_(steps), files_(files), folder_(std::move(folder)) {}

  // Everything that was acknowledged before is in it. FAILED_PRECONDITION where the folder cannot
  // be made or written, which a caller must not take for a coordinator that is away;
  // RESOURCE_EXHAUSTED where its disk is full. What could not be made whole is no backup.
  absl::StatusOr<v1::BackupResponse> Create() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes backup `backup_id` of `folder` (0: the newest) to `data_dir`, where there must be no
  // store. The checksum of every file of the store is checked. NOT_FOUND if there is no such
  // backup.
  static absl::Status Restore(const std::string& folder, int64_t backup_id,
                              const std::string& data_dir);

 private:
  absl::StatusOr<v1::BackupResponse> Make();
  absl::Status CopyArtifactsHere();

  Store* const store_;
  StepStore* const steps_;
  ArtifactFiles* const files_;
  const std::string folder_;
  absl::Mutex mutex_;  // One backup at a time.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_BACKUPS_H_
