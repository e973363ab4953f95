#ifndef PLUMBLINE_CLIENT_FLAG_NAMES_H_
#define PLUMBLINE_CLIENT_FLAG_NAMES_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::client {

// Which flag set which field of a request, so that an error about a field can name what was typed.
// Plain data.
class FlagNames {
 public:
  struct Flag {
    std::string field;     // Path from the specification on, e.g. "block_replay.layouts[0]".
    std::string flag;      // E.g. "--layouts".
    std::string written;   // The value as typed, for suggestions.
    bool is_file = false;  // `written` is a file, whose contents an error may be about.
  };

  void Add(absl::string_view field, absl::string_view flag, absl::string_view written);
  void AddFile(absl::string_view field, absl::string_view flag, absl::string_view file);

  // The flag of `field` or of the nearest field around it: "spec.block_replay.layouts[0].height"
  // is that of "block_replay.layouts[0]". Null if no flag set it.
  const Flag* Find(absl::string_view field) const;

  // All, in the order they were added.
  const std::vector<Flag>& flags() const { return flags_; }

 private:
  std::vector<Flag> flags_;
};

// `status` with the fields of a request told by the flags or arguments that set them: for a call
// that is no job's, {{"name", "JOB"}}. Whole fields alone; what is not named stays.
absl::Status WithFlags(
    const absl::Status& status,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>> flags);

template <typename T>
absl::StatusOr<T> WithFlags(
    absl::StatusOr<T> result,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>> flags) {
  if (result.ok()) return result;
  return WithFlags(result.status(), flags);
}

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_FLAG_NAMES_H_
