#include "server/store/store.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/status.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

// A group commit takes no more than this at once, so that the first of a long queue need not wait
// for the last.
constexpr size_t kMaxGroupBytes = 4 << 20;

// RocksDB's own log, a file beside the data, ends the process by an assertion at the first line
// after one that found the disk full. What it warns of goes where the coordinator logs instead.
class WarningLog final : public rocksdb::Logger {
 public:
  WarningLog() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}

  using Logger::Logv;
  void LogHeader(const char* /*format*/, va_list /*arguments*/) override {}
  void Logv(const char* format, va_list arguments) override {
    char line[1024];
    std::vsnprintf(line, sizeof(line), format, arguments);
    // VerifyChecksum's own readers do not know which file they were given; those of the store do.
    if (absl::EndsWith(line, "without unique ID to verify: 0.sst")) return;
    Log(LogLevel::kWarning, "RocksDB warns", {{"warning", line}});
  }
};

// After an error RocksDB would resume by itself, flush, and begin another log, though what memory
// holds is ahead of the disk. A store that failed stays as it is until the next start.
class NoRecovery final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

rocksdb::Options DatabaseOptions(rocksdb::Env* env) {
  rocksdb::Options options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // A torn tail of the log is what a crash leaves of writes that nobody was told about. Anything
  // else that is unreadable is damage, and opening fails.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.write_buffer_size = 16 << 20;
  options.max_total_wal_size = 64 << 20;
  // What one build has written every other can read, whatever its RocksDB was built with.
  options.compression = rocksdb::kNoCompression;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.info_log = std::make_shared<WarningLog>();
  // Blob files are many, and a process may often open no more than 1024.
  options.max_open_files = 256;
  options.listeners.push_back(std::make_shared<NoRecovery>());
  options.max_bgerror_resume_count = 0;
  // Blobs are flushed as they are written, and a flush would begin another log, failed or not.
  options.avoid_flush_during_shutdown = true;
  return options;
}

// Values of kBlobs lie in blob files, one a flush: what compaction moves is keys. No garbage is
// collected by moving what lives beside it, since that would read, and stumble over, bytes that
// went bad; a flush has the blobs of one step, and its file goes when they do.
rocksdb::ColumnFamilyOptions BlobOptions(const rocksdb::Options& database) {
  rocksdb::ColumnFamilyOptions options(database);
  options.enable_blob_files = true;
  options.min_blob_size = 4 << 10;
  options.blob_file_size = uint64_t{4} << 30;
  // A step fits, so that only BlobStore decides what is flushed together.
  options.write_buffer_size = 64 << 20;
  options.level0_file_num_compaction_trigger = 8;
  return options;
}

}  // namespace

absl::Status Store::Impl::Unreadable(absl::string_view key) {
  return absl::DataLossError(absl::StrCat("the record under key ", Quoted(key), " is unreadable"));
}

Store::Impl::~Impl() {
  if (writer_.joinable()) {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    writer_.join();
    completer_.join();
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    if (handle != nullptr) db_->DestroyColumnFamilyHandle(handle);
  }
  db_.reset();
  if (lock_ != nullptr) {
    (options_.env != nullptr ? options_.env : rocksdb::Env::Default())->UnlockFile(lock_);
  }
}

absl::Status Store::Impl::Open() {
  if (read_only_) {
    // Opening to read takes no lock; whoever writes must not be there.
    rocksdb::Env* const env = options_.env != nullptr ? options_.env : rocksdb::Env::Default();
    PLUMBLINE_RETURN_IF_ERROR(NotOpened(env->LockFile(options_.path + "/LOCK", &lock_)));
  }
  PLUMBLINE_RETURN_IF_ERROR(OpenDatabase());
  PLUMBLINE_RETURN_IF_ERROR(CheckFormat());
  PLUMBLINE_RETURN_IF_ERROR(LoadCounters());
  if (read_only_) return absl::OkStatus();
  writer_ = std::thread([this] { WriteLoop(); });
  completer_ = std::thread([this] { CompletionLoop(); });
  return absl::OkStatus();
}

absl::Status Store::Impl::NotOpened(const rocksdb::Status& status) const {
  // RocksDB has no code of its own for this.
  if (status.IsIOError() && absl::StrContains(status.ToString(), "lock")) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "the store ", options_.path, " is in use by another process; ", status.ToString())),
        "STORE_IN_USE");
  }
  return FromRocksdb(status, absl::StrCat("open the store ", options_.path));
}

absl::Status Store::Impl::OpenDatabase() {
  std::error_code error;
  if (!read_only_) std::filesystem::create_directories(options_.path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("the store's folder ", options_.path, " cannot be made: ", error.message()));
  }
  const rocksdb::Options options = DatabaseOptions(options_.env);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (int i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    families.emplace_back(
        std::string(FamilyName(family)),
        family == Family::kBlobs ? BlobOptions(options) : rocksdb::ColumnFamilyOptions(options));
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  PLUMBLINE_RETURN_IF_ERROR(NotOpened(
      read_only_ ? rocksdb::DB::OpenForReadOnly(options, options_.path, families, &handles, &db)
                 : rocksdb::DB::Open(options, options_.path, families, &handles, &db)));
  db_.reset(db);
  std::copy(handles.begin(), handles.end(), handles_.begin());
  return absl::OkStatus();
}

std::vector<rocksdb::ColumnFamilyHandle*> Store::Impl::logged_families() const {
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  for (int i = 0; i < kFamilyCount; ++i) {
    if (static_cast<Family>(i) != Family::kBlobs) families.push_back(handles_[i]);
  }
  return families;
}

absl::Status Store::Impl::LoadCounters() {
  absl::MutexLock lock(&mutex_);
  // A number that cannot be read must not be taken for none: it would be given again.
  PLUMBLINE_ASSIGN_OR_RETURN(newest_revision_, NewestNumber(Family::kEvents, keys::Revisions()));
  PLUMBLINE_ASSIGN_OR_RETURN(oldest_revision_, OldestNumber(Family::kEvents, keys::Revisions()));
  PLUMBLINE_ASSIGN_OR_RETURN(newest_audit_, NewestNumber(Family::kAudit, ""));
  PLUMBLINE_ASSIGN_OR_RETURN(oldest_audit_, OldestNumber(Family::kAudit, ""));
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest_token,
                             GetNumber(Family::kLeases, keys::FencingToken()));
  leases_.RestoreNewest(newest_token);
  return VisitRecords<store::LeaseRecord>(
      Family::kLeases, keys::Leases(), keys::PrefixEnd(keys::Leases()), false,
      [this](absl::string_view key, const store::LeaseRecord& lease) {
        mutex_.AssertHeld();
        leases_.Restore(keys::TrailingTask(key), lease.fencing_token());
        return true;
      });
}

absl::Status Store::Impl::Health() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

absl::Status Store::Impl::CheckLease(TaskKey task, int64_t token) const {
  absl::MutexLock lock(&mutex_);
  return leases_.Check(task, token);
}

absl::Status Store::Impl::Commit(WriteSet* set, std::function<void(absl::Status)> done) {
  absl::MutexLock lock(&mutex_);
  if (read_only_) return absl::FailedPreconditionError("the store is open to read alone");
  if (!failure_.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the store has failed; restart the coordinator: ", failure_.message()));
  }
  absl::Status admitted = LoadSequences(*set);
  if (admitted.ok()) admitted = leases_.Admit(*set);
  if (!admitted.ok()) {
    // What callers hold in memory is ahead of the disk then, as after a failed write.
    if (!absl::IsAborted(admitted)) failure_ = admitted;
    return admitted;
  }
  Number(set);
  TrimLogs(set);
  queue_.push_back({std::move(set->operations_), std::move(done)});
  return absl::OkStatus();
}

absl::Status Store::Impl::LoadSequences(const WriteSet& set) {
  for (const int64_t job : set.event_jobs_) {
    if (newest_sequences_.contains(job)) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(newest_sequences_[job],
                               NewestNumber(Family::kEvents, keys::Events(job)));
  }
  return absl::OkStatus();
}

// Gives the events, audit events and deletions their numbers and makes them operations.
void Store::Impl::Number(WriteSet* set) {
  store::Revision revision;
  for (size_t i = 0; i < set->events_.size(); ++i) {
    const int64_t job = set->event_jobs_[i];
    v1::JobEvent& event = set->events_[i];
    event.set_sequence(++newest_sequences_[job]);
    set->Put(Family::kEvents, keys::Event(job, event.sequence()), event.SerializeAsString());
    revision.set_job(job);
    revision.set_sequence(event.sequence());
    set->Put(Family::kEvents, keys::Revision(++newest_revision_), revision.SerializeAsString());
  }
  for (const store::Revision& deleted : set->deleted_jobs_) {
    newest_sequences_.erase(deleted.job());
    set->Put(Family::kEvents, keys::Revision(++newest_revision_), deleted.SerializeAsString());
  }
  for (v1::AuditEvent& audit : set->audits_) {
    audit.set_sequence(++newest_audit_);
    set->Put(Family::kAudit, keys::Audit(audit.sequence()), audit.SerializeAsString());
  }
  if (oldest_revision_ == 0 && newest_revision_ > 0) oldest_revision_ = 1;
  if (oldest_audit_ == 0 && newest_audit_ > 0) oldest_audit_ = 1;
}

// Drops a tenth at a time, since a deleted range costs reads until it is compacted.
void Store::Impl::TrimLogs(WriteSet* set) {
  const auto trim = [&](Family family, const std::string& prefix, int64_t newest, int64_t* oldest) {
    if (newest - *oldest < options_.max_log_entries + options_.max_log_entries / 10) return;
    const int64_t first_kept = newest - options_.max_log_entries + 1;
    set->operations_.push_back({WriteSet::Operation::kDeleteRange, family, prefix + keys::Number(0),
                                prefix + keys::Number(first_kept)});
    *oldest = first_kept;
  };
  trim(Family::kEvents, keys::Revisions(), newest_revision_, &oldest_revision_);
  trim(Family::kAudit, "", newest_audit_, &oldest_audit_);
}

void Store::Impl::AddToBatch(const WriteSet::Operation& operation,
                             rocksdb::WriteBatch* batch) const {
  // A batch refuses nothing but sizes of 4 GiB and more, which no record has.
  switch (operation.kind) {
    case WriteSet::Operation::kPut:
      batch->Put(handle(operation.family), operation.key, operation.value);
      break;
    case WriteSet::Operation::kDelete:
      batch->Delete(handle(operation.family), operation.key);
      break;
    case WriteSet::Operation::kDeleteRange:
      batch->DeleteRange(handle(operation.family), operation.key, operation.value);
      break;
  }
}

void Store::Impl::WriteLoop() {
  const auto has_work = [this] {
    mutex_.AssertReaderHeld();
    return !queue_.empty() || stopping_;
  };
  while (true) {
    rocksdb::WriteBatch batch;
    std::vector<Finished> group;
    absl::Status result;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&has_work));
      while (!queue_.empty() && batch.GetDataSize() < kMaxGroupBytes) {
        for (const WriteSet::Operation& operation : queue_.front().operations) {
          AddToBatch(operation, &batch);
        }
        group.push_back({std::move(queue_.front().done), absl::OkStatus()});
        queue_.pop_front();
      }
      if (group.empty()) break;
      result = failure_;
    }
    if (result.ok() && batch.Count() > 0) {
      const absl::Time start = options_.clock->Now();
      CrashPoint(CrashPlace::kStoreBeforeCommit);
      result = FromRocksdb(db_->Write(SyncedWrite(), &batch), "write to the store");
      CrashPoint(CrashPlace::kStoreAfterCommit);
      if (options_.on_write) {
        options_.on_write(options_.clock->Now() - start, static_cast<int>(group.size()));
      }
      if (!result.ok()) {
        Log(LogLevel::kError, "the store cannot be written any more",
            {{"error", result.ToString()}});
        absl::MutexLock lock(&mutex_);
        failure_ = result;
      }
    }
    absl::MutexLock lock(&completion_mutex_);
    for (Finished& each : group) {
      each.status = result;
      finished_.push_back(std::move(each));
    }
  }
  absl::MutexLock lock(&completion_mutex_);
  writer_gone_ = true;
}

void Store::Impl::CompletionLoop() {
  const auto has_work = [this] {
    completion_mutex_.AssertReaderHeld();
    return !finished_.empty() || writer_gone_;
  };
  while (true) {
    std::deque<Finished> finished;
    {
      absl::MutexLock lock(&completion_mutex_, absl::Condition(&has_work));
      if (finished_.empty()) return;
      finished.swap(finished_);
    }
    for (Finished& each : finished) {
      if (each.done) each.done(each.status);
    }
  }
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

absl::StatusOr<std::unique_ptr<Store>> Store::OpenReadOnly(StoreOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options), /*read_only=*/true);
  PLUMBLINE_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options), /*read_only=*/false);
  PLUMBLINE_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

absl::Status Store::MarkRestored(StoreOptions options) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Open(std::move(options)));
  return store->impl_->MarkRestored();
}

absl::Status Store::Commit(WriteSet* set, std::function<void(absl::Status)> done) {
  return impl_->Commit(set, std::move(done));
}

absl::Status Store::CommitAndWait(WriteSet* set) {
  absl::Notification finished;
  absl::Status result;
  PLUMBLINE_RETURN_IF_ERROR(impl_->Commit(set, [&](absl::Status status) {
    result = std::move(status);
    finished.Notify();
  }));
  finished.WaitForNotification();
  return result;
}

absl::Status Store::CheckLease(TaskKey task, int64_t token) const {
  return impl_->CheckLease(task, token);
}

absl::Status Store::Health() const { return impl_->Health(); }
int64_t Store::size_bytes() const {
  int64_t bytes = 0;
  for (int i = 0; i < kFamilyCount; ++i) {
    for (const char* const property :
         {"rocksdb.total-sst-files-size", "rocksdb.total-blob-file-size"}) {
      uint64_t size = 0;
      impl_->db()->GetIntProperty(impl_->handle(static_cast<Family>(i)), property, &size);
      bytes += static_cast<int64_t>(size);
    }
  }
  return bytes;
}

const store::StoreFormat& Store::format() const { return impl_->format(); }

}  // namespace plumbline::server
