#include "server/store/blob_store.h"

#include <memory>
#include <utility>

#include "absl/strings/strip.h"
#include "common/crash_point.h"
#include "common/sha256.h"
#include "common/status.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "server/store/keys.h"
#include "server/store/rocksdb_status.h"

namespace plumbline::server {
namespace {

// Every flush begins another log, and a log is kept until all families that have records in it have
// flushed. After so many blob flushes the others are made to.
constexpr int kFlushesBetweenLogTrims = 64;

// A batch that was larger does not keep its memory. A released-size step has 14.4 MB.
constexpr size_t kMaxKeptBytes = 32 << 20;

rocksdb::WriteOptions Unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

}  // namespace

BlobStore::BlobStore(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                     std::vector<rocksdb::ColumnFamilyHandle*> logged)
    : db_(db),
      family_(family),
      logged_(std::move(logged)),
      batch_(std::make_unique<rocksdb::WriteBatch>()) {}

BlobStore::~BlobStore() = default;

absl::Status BlobStore::Write(const std::vector<Blob>& blobs) {
  if (blobs.empty()) return absl::OkStatus();
  absl::MutexLock lock(&write_mutex_);
  // One batch: it goes into one memory table, which is flushed whole.
  batch_->Clear();
  for (const Blob& blob : blobs) {
    const std::string key = keys::Blob(blob.sha256);
    const rocksdb::Slice key_slice(key);
    std::vector<rocksdb::Slice> pieces;
    int64_t size_bytes = 0;
    for (const absl::string_view piece : blob.pieces) {
      pieces.emplace_back(piece.data(), piece.size());
      size_bytes += static_cast<int64_t>(piece.size());
    }
    rocksdb::Status status =
        batch_->Put(family_, rocksdb::SliceParts(&key_slice, 1),
                    rocksdb::SliceParts(pieces.data(), static_cast<int>(pieces.size())));
    if (status.ok()) {
      status = batch_->Put(family_, keys::BlobMark(blob.sha256), keys::Number(size_bytes));
    }
    PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(status, "write a blob"));
  }
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(db_->Write(Unlogged(), batch_.get()), "write a blob"));
  if (batch_->GetDataSize() > kMaxKeptBytes) *batch_ = rocksdb::WriteBatch();
  CrashPoint(CrashPlace::kStoreBlobsWritten);
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(db_->Flush(flush, family_), "flush a blob"));
  CrashPoint(CrashPlace::kStoreBlobsFlushed);
  if (++flushes_ % kFlushesBetweenLogTrims == 0) {
    flush.wait = false;
    return FromRocksdb(db_->Flush(flush, logged_), "flush the store");
  }
  return absl::OkStatus();
}

absl::StatusOr<BlobStore::Reading> BlobStore::Read(absl::string_view sha256) const {
  Reading reading;
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  const rocksdb::Status status = db_->Get(options, family_, keys::Blob(sha256), &reading.bytes);
  const bool unreadable =
      status.IsNotFound() || status.IsCorruption() ||
      (status.IsIOError() && status.subcode() == rocksdb::Status::kPathNotFound);
  if (!unreadable) PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(status, "read a blob"));
  if (status.ok()) reading.found_sha256 = Sha256Hex(reading.bytes);
  reading.intact = status.ok() && reading.found_sha256 == sha256;
  if (!reading.intact) reading.bytes.clear();
  return reading;
}

absl::Status BlobStore::Delete(const std::vector<std::string>& digests) {
  rocksdb::WriteBatch batch;
  for (const std::string& sha256 : digests) {
    batch.Delete(family_, keys::Blob(sha256));
    batch.Delete(family_, keys::BlobMark(sha256));
  }
  return FromRocksdb(db_->Write(Unlogged(), &batch), "delete blobs");
}

absl::Status BlobStore::Visit(const std::function<void(absl::string_view, int64_t)>& visit) const {
  const std::string begin = keys::BlobMarks();
  const std::string end = keys::PrefixEnd(begin);
  const rocksdb::Slice lower = begin;
  const rocksdb::Slice upper = end;
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> each(db_->NewIterator(options, family_));
  for (each->SeekToFirst(); each->Valid(); each->Next()) {
    const absl::string_view key(each->key().data(), each->key().size());
    visit(absl::StripPrefix(key, begin),
          keys::TrailingNumber({each->value().data(), each->value().size()}));
  }
  return FromRocksdb(each->status(), "list the blobs");
}

absl::Status BlobStore::Reclaim() {
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(db_->Flush(flush, family_), "flush the blobs"));
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  return FromRocksdb(db_->CompactRange(options, family_, nullptr, nullptr), "compact the blobs");
}

}  // namespace plumbline::server
