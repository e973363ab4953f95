#ifndef PLUMBLINE_SERVER_STORE_BLOB_STORE_H_
#define PLUMBLINE_SERVER_STORE_BLOB_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace plumbline::server {

// Bytes by their SHA-256, in one column family with blob files. Blobs go from memory to their file
// once: they are never in the write-ahead log, and compaction does not move them. Beside each lies
// a mark of a few bytes, so that what is there can be listed without reading it.
//
// Any thread may call; calls block on the disk.
class BlobStore {
 public:
  struct Blob {
    std::string sha256;                     // Of the bytes, hex.
    std::vector<absl::string_view> pieces;  // The bytes, one piece after the other.
  };

  // What is stored under a digest.
  struct Reading {
    // The bytes have the digest.
    bool intact = false;
    // Empty unless intact.
    std::string bytes;
    // Digest of what was read instead; empty where nothing could be.
    std::string found_sha256;
  };

  // `logged`: the families whose writes do go into the log. All must outlive it.
  BlobStore(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
            std::vector<rocksdb::ColumnFamilyHandle*> logged);
  ~BlobStore();

  // Returns when all of `blobs` are durable. After a crash before that, all are there or none.
  absl::Status Write(const std::vector<Blob>& blobs);

  // Checks the digest. An error is one of the disk's that says nothing about the bytes; what is
  // corrupt or gone is a Reading that is not intact.
  absl::StatusOr<Reading> Read(absl::string_view sha256) const;

  // After a crash they may be there again.
  absl::Status Delete(const std::vector<std::string>& digests);

  // Digests and sizes of all blobs.
  absl::Status Visit(
      const std::function<void(absl::string_view sha256, int64_t size_bytes)>& visit) const;

  // Gives the disk back what deleted blobs took.
  absl::Status Reclaim();

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const std::vector<rocksdb::ColumnFamilyHandle*> logged_;
  // Held from the first byte of a group to its flush, so that a blob file has one group's blobs.
  absl::Mutex write_mutex_;
  int flushes_ ABSL_GUARDED_BY(write_mutex_) = 0;
  // Kept from write to write: fresh memory for a step costs as much as filling it.
  const std::unique_ptr<rocksdb::WriteBatch> batch_ ABSL_PT_GUARDED_BY(write_mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_BLOB_STORE_H_
