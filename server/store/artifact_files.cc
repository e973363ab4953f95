#include "server/store/artifact_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

constexpr int64_t kReadBytes = 1 << 20;

absl::Span<const uint8_t> ToBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::Status CheckDigest(int64_t expected_size_bytes, absl::string_view expected_sha256,
                         int64_t size_bytes, absl::string_view sha256) {
  if (size_bytes == expected_size_bytes && sha256 == expected_sha256) return absl::OkStatus();
  return WithReason(absl::DataLossError(absl::StrCat(
                        size_bytes, " bytes with SHA-256 ", sha256, " arrived; announced were ",
                        expected_size_bytes, " bytes with ", Quoted(expected_sha256))),
                    "DIGEST_MISMATCH");
}

// Makes entries of a folder durable.
absl::Status SyncFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return FileError(path, "open", errno);
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  return fsync(descriptor) == 0 ? absl::OkStatus() : FileError(path, "sync", errno);
}

absl::Status SyncFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return FileError(path, "open", errno);
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  return fsync(descriptor) == 0 ? absl::OkStatus() : FileError(path, "sync", errno);
}

absl::StatusOr<std::string> ReadAt(int descriptor, const std::string& path, int64_t offset,
                                   int64_t length) {
  std::string bytes(length, '\0');
  int64_t done = 0;
  while (done < length) {
    const ssize_t got = pread(descriptor, bytes.data() + done, length - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, "read", errno);
    if (got == 0) break;
    done += got;
  }
  bytes.resize(done);
  return bytes;
}

absl::Status WriteAllAt(int descriptor, const std::string& path, int64_t offset,
                        absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "write", errno);
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSha256(absl::string_view sha256, absl::string_view field) {
  const bool is_hex = std::all_of(sha256.begin(), sha256.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
  });
  if (sha256.size() == 64 && is_hex) return absl::OkStatus();
  return FieldError(field, absl::StrCat(Quoted(sha256), " is no SHA-256"),
                    "64 lower-case hexadecimal digits");
}

absl::StatusOr<std::unique_ptr<ArtifactFiles>> ArtifactFiles::Open(
    const std::string& folder, const std::vector<std::string>& artifacts,
    const std::vector<std::string>& uploads) {
  absl::flat_hash_set<std::string> known(artifacts.begin(), artifacts.end());
  known.insert(uploads.begin(), uploads.end());
  for (const char* const kind : {"artifacts", "uploads"}) {
    const std::string path = absl::StrCat(folder, "/", kind);
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
    for (auto at = std::filesystem::directory_iterator(path, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      if (known.contains(absl::StrCat(kind, "/", at->path().filename().string()))) continue;
      std::error_code ignored;
      std::filesystem::remove(at->path(), ignored);
    }
    if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  }
  return std::unique_ptr<ArtifactFiles>(new ArtifactFiles(folder));
}

std::string ArtifactFiles::PathOf(absl::string_view name) const {
  return absl::StrCat(folder_, "/", name);
}

absl::Mutex* ArtifactFiles::LockOf(absl::string_view name) {
  return &upload_locks_[absl::HashOf(name) % upload_locks_.size()];
}

absl::StatusOr<std::unique_ptr<ArtifactFiles::Writer>> ArtifactFiles::NewArtifact(
    const std::string& name) const {
  PLUMBLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(PathOf(name)));
  return std::unique_ptr<Writer>(new Writer(std::move(file)));
}

absl::Status ArtifactFiles::Writer::Append(absl::string_view bytes) {
  PLUMBLINE_RETURN_IF_ERROR(file_.WriteAt(size_bytes_, ToBytes(bytes)));
  digest_.Update(bytes);
  size_bytes_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status ArtifactFiles::Writer::Finish(int64_t size_bytes, absl::string_view sha256) {
  PLUMBLINE_RETURN_IF_ERROR(CheckDigest(size_bytes, sha256, size_bytes_, digest_.FinishHex()));
  return file_.Commit();
}

absl::StatusOr<std::string> ArtifactFiles::Read(const std::string& name, int64_t offset,
                                                int64_t length) const {
  return ReadFrom(folder_, name, offset, length);
}

absl::StatusOr<std::string> ArtifactFiles::ReadFrom(const std::string& folder,
                                                    const std::string& name, int64_t offset,
                                                    int64_t length) {
  const std::string path = absl::StrCat(folder, "/", name);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return FileError(path, "open", errno);
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  return ReadAt(descriptor, path, offset, length);
}

void ArtifactFiles::Delete(const std::string& name) {
  absl::MutexLock lock(&deletion_mutex_);
  if (holds_ > 0) {
    to_delete_.push_back(name);
    return;
  }
  std::error_code ignored;  // What stays is collected at the next start.
  std::filesystem::remove(PathOf(name), ignored);
}

ArtifactFiles::Hold::Hold(ArtifactFiles* files) : files_(files) {
  absl::MutexLock lock(&files_->deletion_mutex_);
  ++files_->holds_;
}

ArtifactFiles::Hold::~Hold() {
  std::vector<std::string> to_delete;
  {
    absl::MutexLock lock(&files_->deletion_mutex_);
    if (--files_->holds_ == 0) to_delete.swap(files_->to_delete_);
  }
  for (const std::string& name : to_delete) files_->Delete(name);
}

absl::Status ArtifactFiles::CopyTo(const std::string& name, const std::string& folder) const {
  const std::filesystem::path to = absl::StrCat(folder, "/", name);
  std::error_code error;
  if (std::filesystem::exists(to, error)) return absl::OkStatus();
  std::filesystem::create_directories(to.parent_path(), error);
  const std::string from = PathOf(name);
  if (!error) {
    std::error_code unlinked;
    std::filesystem::create_hard_link(from, to, unlinked);
    if (!unlinked) return SyncFolder(to.parent_path());
    // Under another name first, so that half of a copy is none.
    const std::string partial = absl::StrCat(to.string(), ".partial");
    std::filesystem::copy_file(from, partial, std::filesystem::copy_options::overwrite_existing,
                               error);
    // Nor does it stay where a disk is full.
    absl::Cleanup remover = [&partial] {
      std::error_code ignored;
      std::filesystem::remove(partial, ignored);
    };
    if (!error) PLUMBLINE_RETURN_IF_ERROR(SyncFile(partial));
    if (!error) std::filesystem::rename(partial, to, error);
    if (!error) std::move(remover).Cancel();
  }
  if (error) {
    const std::string message =
        absl::StrCat("cannot copy ", from, " to ", to.string(), ": ", error.message());
    return error == std::errc::no_space_on_device || error.value() == EDQUOT
               ? absl::ResourceExhaustedError(message)
               : absl::UnavailableError(message);
  }
  return SyncFolder(to.parent_path());
}

absl::Status ArtifactFiles::CreateUpload(const std::string& name) {
  const std::string path = PathOf(name);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return FileError(path, "create", errno);
  close(descriptor);
  return SyncFolder(absl::StrCat(folder_, "/uploads"));
}

absl::StatusOr<int64_t> ArtifactFiles::WriteUpload(const std::string& name, int64_t offset,
                                                   absl::string_view bytes) {
  absl::MutexLock lock(LockOf(name));
  const std::string path = PathOf(name);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return FileError(path, "open", errno);
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  struct stat status;
  if (fstat(descriptor, &status) != 0) return FileError(path, "stat", errno);
  const int64_t size = status.st_size;
  const int64_t end = offset + static_cast<int64_t>(bytes.size());
  if (offset < size) {
    const int64_t known = std::min<int64_t>(end, size) - offset;
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string there, ReadAt(descriptor, path, offset, known));
    if (there == bytes.substr(0, known) && end <= size) return size;
    if (there != bytes.substr(0, known)) offset = -1;
  }
  if (offset < 0 || offset > size) {
    return WithReason(
        absl::OutOfRangeError(absl::StrCat("the next byte of this upload is number ", size)),
        "WRONG_OFFSET");
  }
  PLUMBLINE_RETURN_IF_ERROR(WriteAllAt(descriptor, path, offset, bytes));
  if (fdatasync(descriptor) != 0) return FileError(path, "sync", errno);
  return end;
}

absl::Status ArtifactFiles::FinishUpload(const std::string& name, int64_t size_bytes,
                                         absl::string_view sha256, const std::string& artifact) {
  absl::MutexLock lock(LockOf(name));
  const std::string path = PathOf(name);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return FileError(path, "open", errno);
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  Sha256 digest;
  int64_t done = 0;
  while (true) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadAt(descriptor, path, done, kReadBytes));
    if (bytes.empty()) break;
    digest.Update(bytes);
    done += static_cast<int64_t>(bytes.size());
  }
  if (done < size_bytes) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat("only ", done, " of ", size_bytes, " bytes were written")),
                      "UPLOAD_INCOMPLETE");
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckDigest(size_bytes, sha256, done, digest.FinishHex()));
  if (fsync(descriptor) != 0) return FileError(path, "sync", errno);
  if (rename(path.c_str(), PathOf(artifact).c_str()) != 0) return FileError(path, "rename", errno);
  return SyncFolder(absl::StrCat(folder_, "/artifacts"));
}

}  // namespace plumbline::server
