// The version of the store's format, and the way from each older one to the present.
#include <sys/random.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/random_id.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/store/store.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

// docs/store.md says what each version holds.
constexpr int kFormatVersion = 3;
constexpr int kOldestFormatVersion = 1;
constexpr int kTicketKeyBytes = 32;
constexpr int kMigrationBatch = 4096;
// More than any coordinator gives out after a backup, and so often that none will run out.
constexpr int64_t kTokensAfterBackup = int64_t{1} << 40;

absl::StatusOr<std::string> RandomBytes(int count) {
  std::string bytes(count, '\0');
  // Up to 256 bytes come at once; unlike /dev/urandom the call needs no device node.
  if (getrandom(bytes.data(), bytes.size(), 0) != count) {
    return absl::UnavailableError("getrandom gives no bytes");
  }
  return bytes;
}

}  // namespace

absl::Status Store::Impl::CheckFormat() {
  absl::StatusOr<store::StoreFormat> format =
      GetRecord<store::StoreFormat>(Family::kMeta, keys::Format());
  if (absl::IsNotFound(format.status()) && !read_only_) {
    format_.set_version(kFormatVersion);
    format_.set_store_id(RandomIds()->NewId());
    PLUMBLINE_ASSIGN_OR_RETURN(*format_.mutable_ticket_key(), RandomBytes(kTicketKeyBytes));
    return WriteFormat();
  }
  PLUMBLINE_RETURN_IF_ERROR(format.status());
  format_ = *std::move(format);
  if (format_.version() < kOldestFormatVersion || format_.version() > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store ", options_.path, " has format version ", format_.version(),
        "; this program reads versions ", kOldestFormatVersion, " to ", kFormatVersion));
  }
  if (format_.version() == kFormatVersion || read_only_) return absl::OkStatus();
  Log(LogLevel::kInfo, "the store's format is brought up to date",
      {{"from", format_.version()}, {"to", kFormatVersion}});
  // Each step may be cut off anywhere and is then made again: the version is written when all is
  // there. Version 1 had no runs, steps and blobs, whose families were made when it was opened.
  PLUMBLINE_RETURN_IF_ERROR(IndexFinishedJobs());
  CrashPoint(CrashPlace::kStoreBeforeFormat);
  format_.set_version(kFormatVersion);
  return WriteFormat();
}

// Version 3 finds finished jobs by the time they ended.
absl::Status Store::Impl::IndexFinishedJobs() {
  rocksdb::WriteBatch batch;
  absl::Status status;
  const auto write = [&] {
    status = FromRocksdb(db_->Write(SyncedWrite(), &batch), "index the finished jobs");
    batch.Clear();
    return status.ok();
  };
  PLUMBLINE_RETURN_IF_ERROR(VisitRecords<store::JobRecord>(
      Family::kJobs, keys::Jobs(), keys::PrefixEnd(keys::Jobs()), false,
      [&](absl::string_view key, const store::JobRecord& record) {
        const v1::JobState state = record.job().state();
        if (state == v1::JOB_STATE_QUEUED || state == v1::JOB_STATE_RUNNING) return true;
        batch.Put(
            handle(Family::kJobs),
            keys::FinishedJob(FromTimestamp(record.job().end_time()), keys::TrailingNumber(key)),
            "");
        return batch.Count() < kMigrationBatch || write();
      }));
  PLUMBLINE_RETURN_IF_ERROR(status);
  write();
  return status;
}

absl::Status Store::Impl::MarkRestored() {
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest_token,
                             GetNumber(Family::kLeases, keys::FencingToken()));
  format_.set_store_id(RandomIds()->NewId());
  format_.set_restored(true);
  rocksdb::WriteBatch batch;
  batch.Put(handle(Family::kMeta), keys::Format(), format_.SerializeAsString());
  batch.Put(handle(Family::kLeases), keys::FencingToken(),
            keys::Number(newest_token + kTokensAfterBackup));
  return FromRocksdb(db_->Write(SyncedWrite(), &batch), "mark the store as restored");
}

absl::Status Store::Impl::WriteFormat() {
  return FromRocksdb(
      db_->Put(SyncedWrite(), handle(Family::kMeta), keys::Format(), format_.SerializeAsString()),
      "write the store's format");
}

}  // namespace plumbline::server
