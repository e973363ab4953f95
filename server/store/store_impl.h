// Inside of Store: shared by its write path (store.cc) and its reads (store_reads.cc).
#ifndef PLUMBLINE_SERVER_STORE_STORE_IMPL_H_
#define PLUMBLINE_SERVER_STORE_STORE_IMPL_H_

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/status.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/write_batch.h"
#include "server/store/lease_table.h"
#include "server/store/rocksdb_status.h"
#include "server/store/store.h"

namespace plumbline::server {

inline rocksdb::WriteOptions SyncedWrite() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

class Store::Impl {
 public:
  Impl(StoreOptions options, bool read_only)
      : options_(std::move(options)), read_only_(read_only) {}
  ~Impl();

  absl::Status Open();
  absl::Status Commit(WriteSet* set, std::function<void(absl::Status)> done);
  absl::Status CheckLease(TaskKey task, int64_t token) const;
  absl::Status Health() const;

  rocksdb::ColumnFamilyHandle* handle(Family family) const {
    return handles_[static_cast<int>(family)];
  }
  rocksdb::DB* db() const { return db_.get(); }
  // All families but that of the blobs.
  std::vector<rocksdb::ColumnFamilyHandle*> logged_families() const;
  const StoreOptions& options() const { return options_; }

  absl::StatusOr<std::string> Get(Family family, absl::string_view key) const;

  template <typename Record>
  absl::StatusOr<Record> GetRecord(Family family, absl::string_view key) const {
    absl::StatusOr<std::string> bytes = Get(family, key);
    if (!bytes.ok()) return bytes.status();
    return Parse<Record>(*bytes, key);
  }

  template <typename Record>
  static absl::StatusOr<Record> Parse(absl::string_view bytes, absl::string_view key) {
    Record record;
    if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return Unreadable(key);
    }
    return record;
  }

  // Calls `visit` with the keys of a range in order (backwards where `newest_first`) until it
  // returns false.
  absl::Status Visit(Family family, absl::string_view begin, absl::string_view end,
                     bool newest_first,
                     const std::function<bool(absl::string_view, absl::string_view)>& visit) const;

  // Visit with parsed values.
  template <typename Record, typename Take>
  absl::Status VisitRecords(Family family, absl::string_view begin, absl::string_view end,
                            bool newest_first, const Take& take) const;

  // What follows `prefix` in every key that begins with it.
  absl::StatusOr<std::vector<std::string>> Suffixes(Family family, const std::string& prefix) const;

  // The number that the last key of a prefix ends with; 0 if there is none.
  absl::StatusOr<int64_t> NewestNumber(Family family, const std::string& prefix) const;
  // Likewise the first key's.
  absl::StatusOr<int64_t> OldestNumber(Family family, const std::string& prefix) const;
  // The number that is stored under a key; 0 if there is none.
  absl::StatusOr<int64_t> GetNumber(Family family, absl::string_view key) const;

  const store::StoreFormat& format() const { return format_; }
  absl::Status MarkRestored();

 private:
  struct Queued {
    std::vector<WriteSet::Operation> operations;
    std::function<void(absl::Status)> done;
  };
  struct Finished {
    std::function<void(absl::Status)> done;
    absl::Status status;
  };

  static absl::Status Unreadable(absl::string_view key);

  absl::StatusOr<int64_t> EndNumber(Family family, const std::string& prefix, bool newest) const;

  absl::Status OpenDatabase();
  absl::Status NotOpened(const rocksdb::Status& status) const;
  // The format record, and what makes an older store a present one (store_format.cc).
  absl::Status CheckFormat();
  absl::Status WriteFormat();
  absl::Status IndexFinishedJobs();
  absl::Status LoadCounters();
  // Knows the newest sequence number of every job that `set` has events of.
  absl::Status LoadSequences(const WriteSet& set) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Number(WriteSet* set) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimLogs(WriteSet* set) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddToBatch(const WriteSet::Operation& operation, rocksdb::WriteBatch* batch) const;
  void WriteLoop();
  void CompletionLoop();

  const StoreOptions options_;
  const bool read_only_;
  rocksdb::FileLock* lock_ = nullptr;  // Of a store that is open to read; owned.
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount> handles_{};  // Owned, through db_.
  store::StoreFormat format_;

  mutable absl::Mutex mutex_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // As they will be once everything queued is durable.
  LeaseTable leases_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, int64_t> newest_sequences_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t oldest_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t newest_audit_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t oldest_audit_ ABSL_GUARDED_BY(mutex_) = 0;

  absl::Mutex completion_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::deque<Finished> finished_ ABSL_GUARDED_BY(completion_mutex_);
  bool writer_gone_ ABSL_GUARDED_BY(completion_mutex_) = false;

  std::thread writer_;
  std::thread completer_;
};

template <typename Record, typename Take>
absl::Status Store::Impl::VisitRecords(Family family, absl::string_view begin,
                                       absl::string_view end, bool newest_first,
                                       const Take& take) const {
  absl::Status status;
  PLUMBLINE_RETURN_IF_ERROR(
      Visit(family, begin, end, newest_first, [&](absl::string_view key, absl::string_view value) {
        absl::StatusOr<Record> record = Parse<Record>(value, key);
        status = record.status();
        return record.ok() && take(key, *std::move(record));
      }));
  return status;
}

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STORE_IMPL_H_
