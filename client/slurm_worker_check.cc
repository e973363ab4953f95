#include "client/slurm_worker_check.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/program.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

// What the program begins its lines with: its answer, and what is wrong with its flags.
constexpr absl::string_view kAnswer = "plumbline-worker ";
constexpr absl::string_view kRefusal = "plumbline-worker: ";
constexpr int kRefused = 2;
constexpr char kAccepted[] =
    "plumbline-worker as the nodes find it; with --unchecked also one that only they have";

absl::Status CheckPath(const std::string& worker) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(worker, error);
  if (!std::filesystem::exists(status)) {
    return FieldError("--worker", absl::StrCat(worker, " is not there"), kAccepted);
  }
  if (!std::filesystem::is_regular_file(status) || access(worker.c_str(), X_OK) != 0) {
    return FieldError("--worker", absl::StrCat(worker, " is no program"), kAccepted);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> CheckSlurmWorker(const std::string& worker, absl::string_view server,
                                             const std::vector<std::string>& flags) {
  if (absl::StrContains(worker, '/')) PLUMBLINE_RETURN_IF_ERROR(CheckPath(worker));
  std::vector<std::string> words = {worker, "--check-flags", absl::StrCat("--server=", server)};
  words.insert(words.end(), flags.begin(), flags.end());
  const absl::StatusOr<ProgramResult> result = RunProgram(words);
  if (absl::IsNotFound(result.status()) && !absl::StrContains(worker, '/')) {
    return absl::StrCat("note: no ", worker,
                        " is in PATH here: neither it nor its flags are checked");
  }
  if (!result.ok()) return FieldError("--worker", result.status().message(), kAccepted);
  if (result->exit_status == 0 && absl::StartsWith(result->out, kAnswer)) return "";
  absl::string_view said = result->error;
  if (result->exit_status == kRefused && absl::ConsumePrefix(&said, kRefusal)) {
    return FieldError("FLAG", said.substr(0, said.find('\n')),
                      absl::StrCat("flags of plumbline-worker, which ", worker, " --help lists"));
  }
  said = absl::StripAsciiWhitespace(said);
  return FieldError("--worker",
                    absl::StrCat(worker, " is not plumbline-worker, or does not run here",
                                 said.empty() ? "" : ": ", said.substr(0, said.find('\n'))),
                    kAccepted);
}

}  // namespace plumbline::client
