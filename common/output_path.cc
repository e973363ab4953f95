#include "common/output_path.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline {

absl::Status CheckOutputPath(absl::string_view flag, const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return FieldError(flag, absl::StrCat(path, " is there and is no regular file"),
                      "a file's path");
  }
  const absl::Status made = AtomicFile::Create(path).status();
  return made.ok() ? made : FieldError(flag, made.message(), "a file in a folder that is there");
}

}  // namespace plumbline
