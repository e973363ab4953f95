#ifndef PLUMBLINE_COMMON_PRIVATE_FILE_H_
#define PLUMBLINE_COMMON_PRIVATE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace plumbline {

struct PrivateFile {
  std::string text;
  bool others_may_read = false;  // Worth a warning; the group may.
};

// ReadFile of a file that says who may call, or holds a key. Links are followed, and the mode is
// that of the file that was read. INVALID_ARGUMENT naming the mode where the group or others may
// write it: they could let themselves in.
absl::StatusOr<PrivateFile> ReadPrivateFile(const std::string& path, size_t max_bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_PRIVATE_FILE_H_
