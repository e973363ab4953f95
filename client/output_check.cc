#include "client/output_check.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/job_bundle.h"
#include "common/output_path.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

namespace fs = std::filesystem;

constexpr char kBundleAccepted[] = "a new or an empty folder";

// The absolute path, without a slash at its end.
fs::path Absolute(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

// Makes a folder in `folder` and removes it.
bool CanWriteIn(const fs::path& folder) {
  std::string name = (folder / "plumbline-trial-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return false;
  std::error_code error;
  fs::remove(name, error);
  return true;
}

// Checks the outputs of a request one after the other, each against those before it.
class Outputs {
 public:
  explicit Outputs(const JobRequest& request) : request_(request) {}

  absl::Status CheckFile(absl::string_view flag, const std::string& path) {
    PLUMBLINE_RETURN_IF_ERROR(CheckOutputPath(flag, path));
    // Nothing that is read may be written over.
    for (const FlagNames::Flag& given : request_.flags.flags()) {
      std::error_code error;
      if (given.flag == flag || !fs::equivalent(given.written, path, error)) continue;
      return FieldError(flag, absl::StrCat(path, " is what ", given.flag, " reads"),
                        "another file");
    }
    return CheckOthers(flag, path);
  }

  absl::Status CheckFolder(absl::string_view flag, const std::string& folder) {
    PLUMBLINE_RETURN_IF_ERROR(CheckBundleFolder(flag, folder));
    const fs::path wanted = Absolute(folder);
    for (const auto& [other, written] : written_) {
      const auto inside =
          std::mismatch(wanted.begin(), wanted.end(), written.begin(), written.end());
      if (inside.first != wanted.end()) continue;
      return FieldError(flag,
                        absl::StrCat(folder, " is where ", other, " writes ", written.string()),
                        "a folder that nothing else is written to");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOthers(absl::string_view flag, const std::string& path) {
    for (const auto& [other, written] : written_) {
      if (written != Absolute(path)) continue;
      return FieldError(flag, absl::StrCat(path, " is what ", other, " writes"), "another file");
    }
    written_.emplace_back(flag, Absolute(path));
    return absl::OkStatus();
  }

  const JobRequest& request_;
  std::vector<std::pair<std::string, fs::path>> written_;  // Flag and path.
};

}  // namespace

absl::Status CheckBundleFolder(absl::string_view flag, const std::string& folder) {
  const fs::path wanted = Absolute(folder);
  std::error_code error;
  // What there is of the path already: the rest is made in it.
  fs::path there = wanted;
  while (!fs::exists(fs::symlink_status(there, error)) && there.has_relative_path()) {
    there = there.parent_path();
  }
  const auto refuse = [&](absl::string_view why) {
    return FieldError(flag, absl::StrCat(folder, " cannot be made: ", why), kBundleAccepted);
  };
  if (!fs::is_directory(there, error)) {
    return refuse(absl::StrCat(there.string(), " is no folder"));
  }
  if (there == wanted && !fs::is_empty(there, error)) {
    return FieldError(flag, absl::StrCat(folder, " holds something already"), kBundleAccepted);
  }
  fs::create_directories(wanted, error);
  const bool can_write = !error && CanWriteIn(wanted);
  const std::string why =
      error ? error.message() : absl::StrCat(there.string(), " may not be written to");
  for (fs::path made = wanted; made != there; made = made.parent_path()) fs::remove(made, error);
  return can_write ? absl::OkStatus() : refuse(why);
}

absl::Status CheckOutputs(const JobRequest& request, const std::string& signing_key) {
  Outputs outputs(request);
  if (!request.report.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFile("--report", request.report));
  }
  if (!request.save_tensors.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFile("--save-tensors", request.save_tensors));
  }
  if (!request.rule.empty()) {
    // A rule is sealed in its place.
    PLUMBLINE_RETURN_IF_ERROR(request.spec.has_rule()
                                  ? CheckOutputPath("--output", request.rule)
                                  : outputs.CheckFile("--freeze-rule", request.rule));
  }
  if (!request.difference.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFile("--diff", request.difference));
  }
  if (!request.manifest.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFile("--output", request.manifest));
  }
  for (const auto& [role, path] : request.outputs) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFile("--output", path));
  }
  if (!request.bundle.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(outputs.CheckFolder("--bundle", request.bundle));
    PLUMBLINE_RETURN_IF_ERROR(ReadSigningKey(signing_key).status());
  }
  return absl::OkStatus();
}

}  // namespace plumbline::client
