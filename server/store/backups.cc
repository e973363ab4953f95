#include "server/store/backups.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "rocksdb/utilities/backup_engine.h"
#include "server/proto_util.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

// Files below it are copied in no time.
constexpr uint64_t kBytesBetweenCallbacks = 64 << 10;

// Steps are not written until it is told that the files are known, or ends. Any thread may tell it.
class WritePause {
 public:
  explicit WritePause(StepStore* steps) : steps_(steps) { steps_->PauseWrites(); }
  ~WritePause() { End(); }
  WritePause(const WritePause&) = delete;
  WritePause& operator=(const WritePause&) = delete;

  void End() {
    if (!ended_.exchange(true)) steps_->ResumeWrites();
  }

 private:
  StepStore* const steps_;
  std::atomic<bool> ended_{false};
};

rocksdb::BackupEngineOptions EngineOptions(const std::string& folder) {
  rocksdb::BackupEngineOptions options(folder);
  options.share_table_files = true;
  options.share_files_with_checksum = true;
  options.sync = true;
  options.callback_trigger_interval_size = kBytesBetweenCallbacks;
  return options;
}

// Those that the store names, from the backups in `folder`.
absl::Status CopyArtifacts(const StoreOptions& options, const std::string& folder,
                           const std::string& data_dir, absl::string_view doing) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::OpenReadOnly(options));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> artifacts, store->ArtifactNames());
  const std::unique_ptr<ArtifactFiles> backed_up = ArtifactFiles::OpenBackup(folder);
  for (const std::string& name : artifacts) {
    PLUMBLINE_RETURN_IF_ERROR(AnnotateStatus(backed_up->CopyTo(name, data_dir), doing));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::BackupResponse> Backups::Create() {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<v1::BackupResponse> made = Make();
  if (!absl::IsUnavailable(made.status())) return made;
  return absl::FailedPreconditionError(
      absl::StrCat("no backup can be made in ", folder_, ": ", made.status().message()));
}

absl::StatusOr<v1::BackupResponse> Backups::Make() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return absl::UnavailableError(error.message());
  rocksdb::BackupEngine* opened = nullptr;
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(
      rocksdb::BackupEngine::Open(rocksdb::Env::Default(), EngineOptions(folder_), &opened),
      absl::StrCat("open the backups in ", folder_)));
  const std::unique_ptr<rocksdb::BackupEngine> engine(opened);
  rocksdb::BackupID id = 0;
  // What the backup's records name is still there when it is copied.
  const ArtifactFiles::Hold hold(files_);
  const absl::Time time = store_->impl_->options().clock->Now();
  rocksdb::CreateBackupOptions options;
  options.flush_before_backup = true;
  // RocksDB looks at the files first, and at the log a moment later: a step that was written in
  // between would have its record in the backup and not its blobs. When it begins to copy, it has
  // looked at everything.
  WritePause pause(steps_);
  options.progress_callback = [&pause] { pause.End(); };
  PLUMBLINE_RETURN_IF_ERROR(
      FromRocksdb(engine->CreateNewBackup(options, store_->impl_->db(), &id), "make a backup"));
  pause.End();
  if (const absl::Status copied = CopyArtifactsHere(); !copied.ok()) {
    // The store without its artifacts would be the newest backup, which cannot be restored.
    const absl::Status deleted =
        FromRocksdb(engine->DeleteBackup(id), absl::StrCat("delete backup ", id));
    if (deleted.ok()) return copied;
    return absl::Status(copied.code(), absl::StrCat(copied.message(), "; ", deleted.message()));
  }
  rocksdb::BackupInfo info;
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(engine->GetBackupInfo(id, &info), "read the backup"));
  v1::BackupResponse response;
  response.set_backup_id(id);
  response.set_size_bytes(static_cast<int64_t>(info.size));
  *response.mutable_time() = ToTimestamp(time);
  return response;
}

absl::Status Backups::CopyArtifactsHere() {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> artifacts, store_->ArtifactNames());
  for (const std::string& name : artifacts) {
    PLUMBLINE_RETURN_IF_ERROR(files_->CopyTo(name, folder_));
  }
  return absl::OkStatus();
}

absl::Status Backups::Restore(const std::string& folder, int64_t backup_id,
                              const std::string& data_dir) {
  const std::string store_path = absl::StrCat(data_dir, "/store");
  std::error_code error;
  if (std::filesystem::exists(store_path, error) && !std::filesystem::is_empty(store_path, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a store at ", store_path, " already; move it away first"));
  }
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat("there are no backups in ", folder));
  }
  rocksdb::BackupEngineReadOnly* opened = nullptr;
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(
      rocksdb::BackupEngineReadOnly::Open(rocksdb::Env::Default(), EngineOptions(folder), &opened),
      absl::StrCat("open the backups in ", folder)));
  const std::unique_ptr<rocksdb::BackupEngineReadOnly> engine(opened);
  // Before anything is made.
  std::vector<rocksdb::BackupInfo> known;
  engine->GetBackupInfo(&known);
  if (known.empty()) return absl::NotFoundError(absl::StrCat("there are no backups in ", folder));
  const auto is_wanted = [backup_id](const rocksdb::BackupInfo& info) {
    return backup_id == 0 || info.backup_id == backup_id;
  };
  if (std::none_of(known.begin(), known.end(), is_wanted)) {
    return absl::NotFoundError(absl::StrCat(
        "there is no backup ", backup_id, " in ", folder, "; accepted: 0, the newest, or one of: ",
        absl::StrJoin(known, ", ", [](std::string* out, const rocksdb::BackupInfo& info) {
          absl::StrAppend(out, info.backup_id);
        })));
  }
  // Under another name first, so that what is cut off anywhere leaves no store that looks whole.
  StoreOptions options;
  options.path = absl::StrCat(store_path, ".restoring");
  std::filesystem::remove_all(options.path, error);
  std::filesystem::create_directories(options.path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", options.path, ": ", error.message()));
  }
  const std::string doing = absl::StrCat("restore backup ", backup_id, " of ", folder);
  PLUMBLINE_RETURN_IF_ERROR(FromRocksdb(
      backup_id == 0 ? engine->RestoreDBFromLatestBackup(options.path, options.path)
                     : engine->RestoreDBFromBackup(static_cast<rocksdb::BackupID>(backup_id),
                                                   options.path, options.path),
      doing));
  PLUMBLINE_RETURN_IF_ERROR(Store::MarkRestored(options));
  PLUMBLINE_RETURN_IF_ERROR(CopyArtifacts(options, folder, data_dir, doing));
  std::filesystem::rename(options.path, store_path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot rename ", options.path, ": ", error.message()));
  }
  std::unique_ptr<rocksdb::Directory> directory;
  PLUMBLINE_RETURN_IF_ERROR(
      FromRocksdb(rocksdb::Env::Default()->NewDirectory(data_dir, &directory), doing));
  return FromRocksdb(directory->Fsync(), doing);
}

}  // namespace plumbline::server
