#ifndef PLUMBLINE_COMMON_OUTPUT_PATH_H_
#define PLUMBLINE_COMMON_OUTPUT_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Whether a file can be written to `path`, asked before the work that would fill it: by trying to,
// since permissions alone do not say it (/proc, a name that is too long, a disk mounted read-only).
// Nothing stays of the trial, and a file that is there stays as it is. INVALID_ARGUMENT with a
// violation of `flag` where it cannot, as where a folder has that path.
absl::Status CheckOutputPath(absl::string_view flag, const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_OUTPUT_PATH_H_
