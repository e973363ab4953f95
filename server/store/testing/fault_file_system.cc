#include "server/store/testing/fault_file_system.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace plumbline::server {

using rocksdb::IOStatus;

class FaultFileSystem::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(FaultFileSystem* files, std::string name, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), files_(files), name_(std::move(name)) {}

  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* debug) override {
    IOStatus status = files_->Count(/*writes=*/true);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) files_->Wrote(name_, data.size());
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo&, rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(uint64_t size, const rocksdb::IOOptions& options,
                    rocksdb::IODebugContext* debug) override {
    files_->Truncated(name_, size);
    return FSWritableFileOwnerWrapper::Truncate(size, options, debug);
  }
  IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    IOStatus status = files_->Count(/*writes=*/false);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Sync(options, debug);
    if (status.ok()) files_->Synced(name_);
    return status;
  }
  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  FaultFileSystem* const files_;
  const std::string name_;
};

class FaultFileSystem::Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(FaultFileSystem* files, std::string name, std::unique_ptr<rocksdb::FSDirectory> folder)
      : FSDirectoryWrapper(std::move(folder)), files_(files), name_(std::move(name)) {}

  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    IOStatus status = files_->Count(/*writes=*/false);
    if (status.ok()) status = FSDirectoryWrapper::Fsync(options, debug);
    if (status.ok()) files_->SyncedFolder(name_);
    return status;
  }
  IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  FaultFileSystem* const files_;
  const std::string name_;
};

class FaultFileSystem::RandomReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomReader(FaultFileSystem* files, std::unique_ptr<rocksdb::FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), files_(files) {}

  IOStatus Read(uint64_t offset, size_t size, const rocksdb::IOOptions& options,
                rocksdb::Slice* result, char* scratch,
                rocksdb::IODebugContext* debug) const override {
    IOStatus status =
        FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch, debug);
    return status.ok() ? files_->Spoil(result, scratch) : status;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count,
                     const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    for (size_t i = 0; i < count; ++i) {
      requests[i].status = Read(requests[i].offset, requests[i].len, options, &requests[i].result,
                                requests[i].scratch, debug);
    }
    return IOStatus::OK();
  }

 private:
  FaultFileSystem* const files_;
};

class FaultFileSystem::SequentialReader final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialReader(FaultFileSystem* files, std::unique_ptr<rocksdb::FSSequentialFile> file)
      : FSSequentialFileOwnerWrapper(std::move(file)), files_(files) {}

  IOStatus Read(size_t size, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                char* scratch, rocksdb::IODebugContext* debug) override {
    IOStatus status = FSSequentialFileOwnerWrapper::Read(size, options, result, scratch, debug);
    return status.ok() ? files_->Spoil(result, scratch) : status;
  }

 private:
  FaultFileSystem* const files_;
};

void FaultFileSystem::SpoilReads(unsigned seed, int fail_one_in, int flip_one_in) {
  absl::MutexLock lock(&mutex_);
  read_random_.seed(seed);
  fail_one_in_ = fail_one_in;
  flip_one_in_ = flip_one_in;
}

int64_t FaultFileSystem::spoilt_reads() const {
  absl::MutexLock lock(&mutex_);
  return spoilt_reads_;
}

IOStatus FaultFileSystem::Spoil(rocksdb::Slice* result, char* scratch) {
  absl::MutexLock lock(&mutex_);
  if (fail_one_in_ > 0 && read_random_() % fail_one_in_ == 0) {
    ++spoilt_reads_;
    return IOStatus::IOError("a read that was made to fail");
  }
  if (flip_one_in_ > 0 && !result->empty() && read_random_() % flip_one_in_ == 0) {
    ++spoilt_reads_;
    if (result->data() != scratch) std::copy_n(result->data(), result->size(), scratch);
    scratch[read_random_() % result->size()] ^= static_cast<char>(1 << (read_random_() % 8));
    *result = rocksdb::Slice(scratch, result->size());
  }
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& name,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                              rocksdb::IODebugContext* debug) {
  // Mapped files would be read past the wrapper.
  rocksdb::FileOptions unmapped = options;
  unmapped.use_mmap_reads = false;
  IOStatus status = target()->NewRandomAccessFile(name, unmapped, result, debug);
  if (status.ok()) *result = std::make_unique<RandomReader>(this, std::move(*result));
  return status;
}

IOStatus FaultFileSystem::NewSequentialFile(const std::string& name,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                            rocksdb::IODebugContext* debug) {
  IOStatus status = target()->NewSequentialFile(name, options, result, debug);
  if (status.ok()) *result = std::make_unique<SequentialReader>(this, std::move(*result));
  return status;
}

void FaultFileSystem::FailAfter(int operations) {
  absl::MutexLock lock(&mutex_);
  operations_left_ = operations;
}

void FaultFileSystem::SetFull(bool full) {
  absl::MutexLock lock(&mutex_);
  full_ = full;
}

bool FaultFileSystem::failed() const {
  absl::MutexLock lock(&mutex_);
  return operations_left_ == 0;
}

IOStatus FaultFileSystem::Count(bool writes) {
  absl::MutexLock lock(&mutex_);
  if (operations_left_ == 0) return IOStatus::IOError("the power is gone");
  if (operations_left_ > 0) --operations_left_;
  return writes && full_ ? IOStatus::NoSpace("the disk is full") : IOStatus::OK();
}

void FaultFileSystem::Wrote(const std::string& name, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  files_[name].size_bytes += bytes;
}

void FaultFileSystem::Truncated(const std::string& name, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  State& state = files_[name];
  state.size_bytes = size_bytes;
  state.synced_bytes = std::min(state.synced_bytes, size_bytes);
}

void FaultFileSystem::Synced(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  files_[name].synced_bytes = files_[name].size_bytes;
}

void FaultFileSystem::SyncedFolder(const std::string& folder) {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, state] : files_) {
    if (std::filesystem::path(name).parent_path() == std::filesystem::path(folder)) {
      state.in_folder = true;
    }
  }
}

void FaultFileSystem::LosePower(std::mt19937* random) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, state] : files_) {
    std::error_code error;
    if (!state.in_folder && (*random)() % 2 == 0) {
      std::filesystem::remove(name, error);
      continue;
    }
    const uint64_t unsynced = state.size_bytes - state.synced_bytes;
    std::filesystem::resize_file(name, state.synced_bytes + (*random)() % (unsynced + 1), error);
  }
  files_.clear();
  operations_left_ = -1;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& name,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result,
                                          rocksdb::IODebugContext* debug) {
  IOStatus status = Count(/*writes=*/true);
  if (status.ok()) status = target()->NewWritableFile(name, options, result, debug);
  if (!status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    files_[name] = State();
  }
  *result = std::make_unique<File>(this, name, std::move(*result));
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* result,
                                       rocksdb::IODebugContext* debug) {
  IOStatus status = target()->NewDirectory(name, options, result, debug);
  if (status.ok()) *result = std::make_unique<Directory>(this, name, std::move(*result));
  return status;
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                     const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) {
  IOStatus status = Count(/*writes=*/false);
  if (status.ok()) status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  if (const auto found = files_.find(from); found != files_.end()) {
    files_[to] = found->second;
    files_[to].in_folder = true;
    files_.erase(from);
  }
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) {
  IOStatus status = Count(/*writes=*/false);
  if (status.ok()) status = target()->DeleteFile(name, options, debug);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  files_.erase(name);
  return status;
}

}  // namespace plumbline::server
