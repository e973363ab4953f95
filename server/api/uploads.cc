#include "server/api/uploads.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/api/file_name.h"
#include "server/proto_util.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kLifetime = absl::Hours(1);
constexpr int64_t kMaxOpenUploads = 1000;
constexpr int64_t kMaxPluginBytes = int64_t{1} << 30;

v1::ArtifactRole RoleOf(bool plugin) {
  return plugin ? v1::ARTIFACT_ROLE_PLUGIN : v1::ARTIFACT_ROLE_INPUT;
}

}  // namespace

Uploads::Uploads(const Api& api) : api_(api) {
  const absl::StatusOr<std::vector<std::string>> names = api_.store->UploadNames();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const absl::StatusOr<store::UploadRecord> record = api_.store->ReadUpload(name);
    if (record.ok()) Touch(*record);
  }
}

absl::Time Uploads::Touch(const store::UploadRecord& record) {
  const absl::Time expires = api_.clock->Now() + kLifetime;
  absl::MutexLock lock(&mutex_);
  open_[record.name()] = {expires, record.principal(), record.announced_size_bytes()};
  return expires;
}

absl::Status Uploads::CheckQuota(const Caller& caller, int64_t bytes) {
  const int64_t most = api_.limits.open_upload_bytes;
  if (!caller.authenticated || most == 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  int64_t uploads = 0;
  for (const auto& [name, open] : open_) {
    if (open.principal != caller.principal) continue;
    bytes += open.announced_bytes;
    ++uploads;
  }
  if (bytes <= most && uploads < kMaxOpenUploads) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                        Quoted(caller.principal), " has too many uploads unfinished: at most ",
                        kMaxOpenUploads, " of ", most, " bytes together")),
                    "QUOTA");
}

absl::StatusOr<store::UploadRecord> Uploads::Find(const Caller& caller,
                                                  const std::string& name) const {
  PLUMBLINE_RETURN_IF_ERROR(ParseName(name, "uploads", "name").status());
  PLUMBLINE_ASSIGN_OR_RETURN(store::UploadRecord record, api_.store->ReadUpload(name));
  if (caller.authenticated && record.principal() != caller.principal) {
    return WithReason(absl::NotFoundError(absl::StrCat("there is no ", name)), "NOT_FOUND");
  }
  return record;
}

void Uploads::Collect() {
  std::vector<std::string> lapsed;
  const absl::Time now = api_.clock->Now();
  {
    absl::MutexLock lock(&mutex_);
    for (auto upload = open_.begin(); upload != open_.end();) {
      if (upload->second.expires > now) {
        ++upload;
        continue;
      }
      lapsed.push_back(upload->first);
      upload = open_.erase(upload);
    }
  }
  for (const std::string& name : lapsed) {
    WriteSet set;
    Drop(name, &set).IgnoreError();
  }
}

// Records first, bytes second: bytes without a record are collected at the next start.
absl::Status Uploads::Drop(const std::string& name, WriteSet* set) {
  {
    absl::MutexLock lock(&mutex_);
    open_.erase(name);
  }
  set->DeleteUpload(name);
  const absl::Status status = api_.store->CommitAndWait(set);
  if (status.ok()) api_.files->Delete(name);
  return status;
}

absl::StatusOr<v1::Upload> Uploads::Create(const Caller& caller,
                                           const v1::CreateUploadRequest& request) {
  PLUMBLINE_RETURN_IF_ERROR(CheckFileName(request.file_name(), "file_name"));
  if (request.size_bytes() < 0 || request.size_bytes() > kMaxFileBytes) {
    return FieldError("size_bytes", absl::StrCat(request.size_bytes(), " is out of range"),
                      absl::StrCat("0 to ", kMaxFileBytes));
  }
  if (request.plugin()) {
    PLUMBLINE_RETURN_IF_ERROR(api_.gatekeeper->RequireAdmin(caller, "uploading a plug-in"));
  }
  if (request.plugin() && !api_.takes_plugin_uploads) {
    return FieldError("plugin", "this server takes no uploaded plug-ins",
                      "plug-ins that a worker has (`plumbline workers list`), or a server and "
                      "workers that were started with --allow-plugin-uploads");
  }
  if (request.plugin() && request.size_bytes() > kMaxPluginBytes) {
    return FieldError("size_bytes", absl::StrCat(request.size_bytes(), " is out of range"),
                      absl::StrCat("0 to ", kMaxPluginBytes, " for a plug-in"));
  }
  v1::Upload upload;
  if (!request.sha256().empty()) {
    PLUMBLINE_RETURN_IF_ERROR(CheckSha256(request.sha256(), "sha256"));
    const absl::StatusOr<v1::Artifact> known =
        api_.store->FindUploadedArtifact(request.sha256(), request.file_name(), request.plugin());
    if (known.ok() && known->role() == RoleOf(request.plugin())) {
      upload.set_artifact(known->name());
      upload.set_size_bytes(known->size_bytes());
      return upload;
    }
  }
  Collect();
  PLUMBLINE_RETURN_IF_ERROR(CheckQuota(caller, request.size_bytes()));
  upload.set_name(absl::StrCat("uploads/", api_.ids->NewId()));
  PLUMBLINE_RETURN_IF_ERROR(api_.files->CreateUpload(upload.name()));
  store::UploadRecord record;
  record.set_name(upload.name());
  record.set_file_name(request.file_name());
  record.set_announced_size_bytes(request.size_bytes());
  record.set_plugin(request.plugin());
  record.set_principal(caller.principal);
  WriteSet set;
  set.PutUpload(record);
  set.AppendAudit(api_.dispatcher->Audit(caller, upload.name()));
  PLUMBLINE_RETURN_IF_ERROR(api_.store->CommitAndWait(&set));
  *upload.mutable_expire_time() = ToTimestamp(Touch(record));
  return upload;
}

absl::StatusOr<v1::Upload> Uploads::Write(const Caller& caller,
                                          const v1::WriteUploadRequest& request) {
  PLUMBLINE_ASSIGN_OR_RETURN(const store::UploadRecord record, Find(caller, request.name()));
  const int64_t size = static_cast<int64_t>(request.data().size());
  if (size < 1 || size > kMaxChunkBytes) {
    return FieldError("data", absl::StrCat("has ", size, " bytes"), "1 byte to 1 MiB");
  }
  if (request.offset() < 0 || request.offset() > record.announced_size_bytes() - size) {
    return FieldError(
        "offset", absl::StrCat(request.offset(), " and ", size, " bytes go past the end"),
        absl::StrCat("within the ", record.announced_size_bytes(), " bytes that were announced"));
  }
  v1::Upload upload;
  upload.set_name(request.name());
  PLUMBLINE_ASSIGN_OR_RETURN(
      const int64_t stored,
      api_.files->WriteUpload(request.name(), request.offset(), request.data()));
  upload.set_size_bytes(stored);
  *upload.mutable_expire_time() = ToTimestamp(Touch(record));
  return upload;
}

absl::StatusOr<v1::Artifact> Uploads::Finish(const Caller& caller,
                                             const v1::FinishUploadRequest& request) {
  PLUMBLINE_RETURN_IF_ERROR(CheckSha256(request.sha256(), "sha256"));
  PLUMBLINE_ASSIGN_OR_RETURN(const store::UploadRecord record, Find(caller, request.name()));
  v1::Artifact artifact;
  artifact.set_name(absl::StrCat("artifacts/", api_.ids->NewId()));
  artifact.set_role(RoleOf(record.plugin()));
  artifact.set_file_name(record.file_name());
  artifact.set_media_type("application/octet-stream");
  artifact.set_size_bytes(request.size_bytes());
  artifact.set_sha256(request.sha256());
  *artifact.mutable_create_time() = ToTimestamp(api_.clock->Now());
  const absl::Status finished = api_.files->FinishUpload(request.name(), request.size_bytes(),
                                                         request.sha256(), artifact.name());
  if (!finished.ok()) {
    WriteSet set;
    PLUMBLINE_RETURN_IF_ERROR(Drop(request.name(), &set));
    return finished;
  }
  return Record(caller, request.name(), artifact);
}

absl::StatusOr<v1::Artifact> Uploads::Record(const Caller& caller, const std::string& upload,
                                             const v1::Artifact& artifact) {
  // Of two that finish the same file at once, the second finds what the first has written.
  absl::MutexLock lock(&record_mutex_);
  const absl::StatusOr<v1::Artifact> known = api_.store->FindUploadedArtifact(
      artifact.sha256(), artifact.file_name(), artifact.role() == v1::ARTIFACT_ROLE_PLUGIN);
  if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
  const bool shares = known.ok() && known->role() == artifact.role();
  const v1::Artifact& kept = shares ? *known : artifact;
  WriteSet set;
  if (!shares) {
    // Plug-ins were once indexed as inputs are: such a one moves out of the way.
    if (known.ok()) set.PutArtifact(*known, std::nullopt);
    set.PutArtifact(artifact, std::nullopt);
  }
  set.AppendAudit(api_.dispatcher->Audit(caller, kept.name()));
  PLUMBLINE_RETURN_IF_ERROR(Drop(upload, &set));
  if (shares) api_.files->Delete(artifact.name());
  return kept;
}

}  // namespace plumbline::server
