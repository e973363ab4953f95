// A file in memory, for readers that want a path.
#ifndef PLUMBLINE_TESTS_FUZZ_MEMORY_FILE_H_
#define PLUMBLINE_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace plumbline::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view contents) : descriptor_(memfd_create("f", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, contents.data(), contents.size()) !=
                               static_cast<ssize_t>(contents.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};

}  // namespace plumbline::fuzz

#endif  // PLUMBLINE_TESTS_FUZZ_MEMORY_FILE_H_
