#ifndef PLUMBLINE_SERVER_STORE_ARTIFACT_FILES_H_
#define PLUMBLINE_SERVER_STORE_ARTIFACT_FILES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/files.h"
#include "common/sha256.h"

namespace plumbline::server {

// The bytes of artifacts and of unfinished uploads, one file each. What they are is in the Store.
// `name` is a resource name that the coordinator made ("artifacts/{artifact}"), never a caller's
// text: callers' names are looked up in the Store first. Any thread may call; calls block.
class ArtifactFiles {
 public:
  // Makes "artifacts" and "uploads" in `folder` and deletes what is in neither list: what a crash
  // left between a file and its record.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(
      const std::string& folder, const std::vector<std::string>& artifacts,
      const std::vector<std::string>& uploads);

  // The folder of backups, whose files nobody else changes.
  static std::unique_ptr<ArtifactFiles> OpenBackup(const std::string& folder) {
    return std::unique_ptr<ArtifactFiles>(new ArtifactFiles(folder));
  }

  // An artifact that arrives in pieces; nothing of it is seen until Finish. One thread at a time.
  class Writer {
   public:
    absl::Status Append(absl::string_view bytes);
    int64_t size_bytes() const { return size_bytes_; }
    // Checks length and digest of all that was appended (DATA_LOSS, reason DIGEST_MISMATCH) and
    // makes the file durable.
    absl::Status Finish(int64_t size_bytes, absl::string_view sha256);

   private:
    friend class ArtifactFiles;
    explicit Writer(AtomicFile file) : file_(std::move(file)) {}

    AtomicFile file_;
    Sha256 digest_;
    int64_t size_bytes_ = 0;
  };
  absl::StatusOr<std::unique_ptr<Writer>> NewArtifact(const std::string& name) const;

  // At most `length` bytes from `offset`; fewer only at the end of the file.
  absl::StatusOr<std::string> Read(const std::string& name, int64_t offset, int64_t length) const;
  // Read, of a folder that nobody has open.
  static absl::StatusOr<std::string> ReadFrom(const std::string& folder, const std::string& name,
                                              int64_t offset, int64_t length);
  void Delete(const std::string& name);

  // As long as it lives nothing is deleted; what was to be is when the last of them ends.
  class Hold {
   public:
    explicit Hold(ArtifactFiles* files);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    ArtifactFiles* const files_;
  };
  // Puts the file of an artifact into `folder` too, unless it is there. Artifacts never change, so
  // a second name of the same file will do where the file system has such.
  absl::Status CopyTo(const std::string& name, const std::string& folder) const;

  // Starts an empty upload.
  absl::Status CreateUpload(const std::string& name);
  // Makes `bytes` durable at `offset`, which is at most the present size: OUT_OF_RANGE (reason
  // WRONG_OFFSET) says what that is. Bytes that are there already must be the same. The new size.
  absl::StatusOr<int64_t> WriteUpload(const std::string& name, int64_t offset,
                                      absl::string_view bytes);
  // Checks length and digest and makes the upload the artifact `artifact`. DATA_LOSS (reason
  // DIGEST_MISMATCH) for other bytes, FAILED_PRECONDITION (UPLOAD_INCOMPLETE) for fewer.
  absl::Status FinishUpload(const std::string& name, int64_t size_bytes, absl::string_view sha256,
                            const std::string& artifact);

 private:
  explicit ArtifactFiles(std::string folder) : folder_(std::move(folder)) {}

  std::string PathOf(absl::string_view name) const;
  absl::Mutex* LockOf(absl::string_view name);

  const std::string folder_;
  // Keep two writes to one upload apart.
  std::array<absl::Mutex, 16> upload_locks_;
  absl::Mutex deletion_mutex_;
  int holds_ ABSL_GUARDED_BY(deletion_mutex_) = 0;
  std::vector<std::string> to_delete_ ABSL_GUARDED_BY(deletion_mutex_);
};

// INVALID_ARGUMENT naming `field` unless `sha256` is 64 lower-case hex digits.
absl::Status CheckSha256(absl::string_view sha256, absl::string_view field);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_ARTIFACT_FILES_H_
