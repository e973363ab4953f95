#include "client/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
// An upload is begun anew this often, where the coordinator lost it with its connection.
constexpr int kUploadAttempts = 3;

using Artifacts = v1::ArtifactService::StubInterface;

std::string BaseName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// An input file, read twice: for its digest and to be sent. Not mapped: a file that somebody
// shortens meanwhile is then an error and not a signal.
class InputReader {
 public:
  static absl::StatusOr<InputReader> Open(const std::string& path, UploadKind kind) {
    if (kind == UploadKind::kBundleEntry) {
      PLUMBLINE_ASSIGN_OR_RETURN(const int descriptor, OpenEntry(path));
      return Read(InputReader(path, descriptor), kind);
    }
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    InputReader reader(path, open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (reader.descriptor_ < 0) return FileError(path, "cannot open", errno);
    return Read(std::move(reader), kind);
  }

  InputReader(InputReader&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_),
        sha256_(std::move(other.sha256_)) {}
  InputReader& operator=(InputReader&&) = delete;
  ~InputReader() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  size_t size() const { return size_; }
  const std::string& sha256() const { return sha256_; }

  // The bytes from `offset` on, kChunkBytes or what is left.
  absl::StatusOr<std::string> Chunk(size_t offset) const {
    std::string chunk(std::min(kChunkBytes, size_ - offset), '\0');
    size_t filled = 0;
    while (filled < chunk.size()) {
      const ssize_t count = pread(descriptor_, chunk.data() + filled, chunk.size() - filled,
                                  static_cast<off_t>(offset + filled));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return FileError(path_, "cannot read", errno);
      if (count == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path_, ": became shorter while it was read"));
      }
      filled += static_cast<size_t>(count);
    }
    return chunk;
  }

 private:
  // Takes the size and the digest of what was opened. Nothing comes of an empty input, but a folder
  // with an empty file is judged as any other.
  static absl::StatusOr<InputReader> Read(InputReader reader, UploadKind kind) {
    struct stat info = {};
    if (fstat(reader.descriptor_, &info) != 0) {
      return FileError(reader.path_, "cannot stat", errno);
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.path_, ": is no regular file; accepted: a regular file"));
    }
    reader.size_ = static_cast<size_t>(info.st_size);
    if (reader.size_ == 0 && kind != UploadKind::kBundleEntry) {
      return absl::InvalidArgumentError(absl::StrCat(reader.path_, ": the file is empty"));
    }
    Sha256 digest;
    for (size_t offset = 0; offset < reader.size_; offset += kChunkBytes) {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string chunk, reader.Chunk(offset));
      digest.Update(chunk);
    }
    reader.sha256_ = digest.FinishHex();
    return reader;
  }

  InputReader(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // Owned; -1 when moved from.
  size_t size_ = 0;
  std::string sha256_;
};

absl::StatusOr<std::string> UploadOnce(Session* session, const InputReader& input,
                                       const std::string& file_name, UploadKind kind) {
  v1::CreateUploadRequest create;
  create.set_plugin(kind == UploadKind::kPlugin);
  create.set_file_name(file_name);
  create.set_size_bytes(static_cast<int64_t>(input.size()));
  create.set_sha256(input.sha256());
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Upload upload, session->Call(&Artifacts::CreateUpload, create));
  if (!upload.artifact().empty()) return upload.artifact();
  const std::string name = upload.name();
  for (size_t offset = 0; offset < input.size(); offset += kChunkBytes) {
    v1::WriteUploadRequest write;
    write.set_name(name);
    write.set_offset(static_cast<int64_t>(offset));
    PLUMBLINE_ASSIGN_OR_RETURN(*write.mutable_data(), input.Chunk(offset));
    PLUMBLINE_ASSIGN_OR_RETURN(upload, session->Call(&Artifacts::WriteUpload, write));
  }
  v1::FinishUploadRequest finish;
  finish.set_name(name);
  finish.set_size_bytes(static_cast<int64_t>(input.size()));
  finish.set_sha256(input.sha256());
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Artifact artifact,
                             session->Call(&Artifacts::FinishUpload, finish));
  return artifact.name();
}

// Receives one artifact into a file that does not exist under its name yet.
class Receiver {
 public:
  explicit Receiver(AtomicFile file) : file_(std::move(file)) {}

  absl::Status Receive(const v1::GetArtifactResponse& part) {
    if (part.has_trailer()) {
      trailer_ = part.trailer();
      has_trailer_ = true;
      return absl::OkStatus();
    }
    const auto bytes = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(part.chunk().data()),
                                           part.chunk().size());
    PLUMBLINE_RETURN_IF_ERROR(file_.WriteAt(size_, bytes));
    size_ += bytes.size();
    digest_.Update(bytes);
    return absl::OkStatus();
  }

  absl::Status Finish(const v1::Artifact& artifact) {
    const std::string sha256 = digest_.FinishHex();
    const auto size = static_cast<int64_t>(size_);
    if (!has_trailer_ || trailer_.size_bytes() != size || trailer_.sha256() != sha256) {
      return absl::DataLossError(absl::StrCat(artifact.name(), ": the bytes received have SHA-256 ",
                                              sha256, ", those sent ", trailer_.sha256()));
    }
    if (artifact.size_bytes() != size || artifact.sha256() != sha256) {
      return absl::DataLossError(absl::StrCat(artifact.name(), ": the bytes received have SHA-256 ",
                                              sha256, ", the artifact ", artifact.sha256()));
    }
    return file_.Commit();
  }

 private:
  AtomicFile file_;
  size_t size_ = 0;
  Sha256 digest_;
  v1::StreamTrailer trailer_;
  bool has_trailer_ = false;
};

}  // namespace

absl::StatusOr<std::string> UploadFile(Session* session, absl::string_view flag,
                                       const std::string& path, UploadKind kind) {
  const absl::StatusOr<InputReader> input = InputReader::Open(path, kind);
  if (!input.ok()) return FieldError(flag, input.status().message());
  absl::StatusOr<std::string> artifact = absl::UnknownError("");
  for (int attempt = 0; attempt < kUploadAttempts; ++attempt) {
    artifact = UploadOnce(session, *input, BaseName(path), kind);
    // NOT_FOUND: the coordinator that knew the upload is gone.
    if (artifact.ok() || !absl::IsNotFound(artifact.status())) break;
  }
  if (artifact.ok()) return artifact;
  if (absl::IsDataLoss(artifact.status())) {
    return FieldError(flag, absl::StrCat(path, ": the file changed while it was read"));
  }
  return AnnotateStatus(artifact.status(), absl::StrCat(flag, "=", path));
}

absl::Status DownloadArtifact(Session* session, const v1::Artifact& artifact,
                              const std::string& path) {
  absl::Status written = absl::OkStatus();
  const absl::Status received = session->RetryStream([&](grpc::ClientContext* context) {
    written = absl::OkStatus();
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(path);
    if (!file.ok()) {
      written = file.status();
      return grpc::Status::OK;
    }
    Receiver receiver(*std::move(file));
    v1::GetArtifactRequest request;
    request.set_name(artifact.name());
    const auto stream = session->artifacts().GetArtifact(context, request);
    v1::GetArtifactResponse part;
    while (written.ok() && stream->Read(&part)) {
      if (!part.has_header()) written = receiver.Receive(part);
    }
    if (!written.ok()) context->TryCancel();
    const grpc::Status status = stream->Finish();
    if (written.ok() && status.ok()) written = receiver.Finish(artifact);
    // What cannot be written here is no lost connection, although it ended the call.
    return written.ok() ? status : grpc::Status::OK;
  });
  if (!written.ok()) return written;
  return received;
}

}  // namespace plumbline::client
