#ifndef PLUMBLINE_SERVER_STORE_TESTING_FAULT_FILE_SYSTEM_H_
#define PLUMBLINE_SERVER_STORE_TESTING_FAULT_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/file_system.h"

namespace plumbline::server {

// The machine's files, of which a loss of power keeps what was synced, and of the rest as much as
// chance has it: a file's unsynced end is torn off anywhere, and a file whose folder was not synced
// since it was made may be gone. Renames and deletions are kept. Any thread may call.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "FaultFileSystem"; }
  static const char* kClassName() { return "FaultFileSystem"; }

  // The power goes after so many more writes and syncs: all further ones fail.
  void FailAfter(int operations);
  // Writes fail for want of room, or no longer.
  void SetFull(bool full);
  // One read in so many fails (0: none), and in one in so many a bit is flipped, as chance has it.
  // Of files that are opened from now on.
  void SpoilReads(unsigned seed, int fail_one_in, int flip_one_in);
  // How many reads it spoilt.
  int64_t spoilt_reads() const;
  // Whether FailAfter's time has come.
  bool failed() const;
  // What a loss of power leaves. Nothing may be open; afterwards everything works again.
  void LosePower(std::mt19937* random);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  // Through NewWritableFile above, so that a log finds the disk full too.
  rocksdb::IOStatus NewLogger(const std::string& name, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result,
                              rocksdb::IODebugContext* debug) override {
    return FileSystem::NewLogger(name, options, result, debug);
  }
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class File;
  class RandomReader;
  class SequentialReader;
  class Directory;

  struct State {
    uint64_t size_bytes = 0;
    uint64_t synced_bytes = 0;
    bool in_folder = false;  // The folder was synced since.
  };

  // Fails the read, or flips a bit of what it got, where chance has it.
  rocksdb::IOStatus Spoil(rocksdb::Slice* result, char* scratch);
  // Counts an operation; an error once the power is gone.
  rocksdb::IOStatus Count(bool writes);
  void Wrote(const std::string& name, uint64_t bytes);
  void Truncated(const std::string& name, uint64_t size_bytes);
  void Synced(const std::string& name);
  void SyncedFolder(const std::string& folder);

  mutable absl::Mutex mutex_;
  std::map<std::string, State> files_ ABSL_GUARDED_BY(mutex_);
  int operations_left_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: no end.
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  std::mt19937 read_random_ ABSL_GUARDED_BY(mutex_);
  int fail_one_in_ ABSL_GUARDED_BY(mutex_) = 0;
  int flip_one_in_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t spoilt_reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_TESTING_FAULT_FILE_SYSTEM_H_
