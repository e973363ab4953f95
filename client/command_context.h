#ifndef PLUMBLINE_CLIENT_COMMAND_CONTEXT_H_
#define PLUMBLINE_CLIENT_COMMAND_CONTEXT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/command_line.h"
#include "client/environment.h"
#include "client/exit_status.h"
#include "client/flag_names.h"
#include "client/job_request.h"
#include "client/job_runner.h"
#include "client/session.h"
#include "client/transfer.h"

namespace plumbline::client {

// What one command works with: what was typed, where it writes to, and its connection, if it makes
// one; and how it makes a job. One thread.
class CommandContext {
 public:
  // Both must outlive it.
  CommandContext(const CommandLine& line, const Environment& environment)
      : line_(line), environment_(environment) {}
  CommandContext(const CommandContext&) = delete;
  CommandContext& operator=(const CommandContext&) = delete;

  const CommandLine& line() const { return line_; }
  const Environment& environment() const { return environment_; }
  const Output& output() const { return environment_.output; }
  const Style& style() const { return environment_.output.out_style; }
  // How paths that the worker opens are written.
  PathStyle path_style() const {
    return line_.server.server.empty() ? PathStyle::kAbsolute : PathStyle::kAsWritten;
  }

  // Connects to --server, or to what is this process; `needs_worker` as Environment's.
  absl::Status Connect(bool needs_worker);
  // Null before Connect.
  Session* session() { return session_.get(); }
  // Only after Connect.
  JobRunner Runner();

  // In place of any input.
  static absl::StatusOr<v1::InputFile> NoInput(absl::string_view flag, absl::string_view written);
  // An input as `written` after `flag`: uploads files of the client's.
  absl::StatusOr<v1::InputFile> Resolve(absl::string_view flag, absl::string_view written);
  absl::StatusOr<v1::InputFile> Upload(absl::string_view flag, absl::string_view written,
                                       UploadKind kind);
  // Uploads plug-ins for the job to bring.
  absl::Status AddPlugins(const std::vector<std::string>& plugins, JobRequest* request);

  // Whether what the request is to write can be written: before anything else is done for it. Its
  // inputs may be missing yet.
  absl::Status CheckOutputs(const JobRequest& bare);

  using MakeRequest = std::function<absl::StatusOr<JobRequest>(const InputResolver&)>;
  // Checks outputs, connects, then makes the job. `asks_first`: without its files, so that a bad
  // request uploads nothing; so it is done where there are plug-ins, too.
  absl::StatusOr<ExitStatus> Submit(bool asks_first, const std::vector<std::string>& plugins,
                                    const MakeRequest& make);
  // The same for what has nothing but files, which are of this kind.
  absl::StatusOr<ExitStatus> SubmitFiles(const MakeRequest& make,
                                         UploadKind kind = UploadKind::kInput);

  // From here on errors about fields are told by these flags.
  void NoteFlags(const FlagNames& flags) { flags_ = flags; }
  // An error for a person, by flags and files' names as they were typed.
  std::string ErrorTextOf(const absl::Status& status) const;

 private:
  absl::Status WithFileNames(const absl::Status& status) const;
  absl::StatusOr<ExitStatus> Submit(bool asks_first, const std::vector<std::string>& plugins,
                                    UploadKind kind, const MakeRequest& make);

  const CommandLine& line_;
  const Environment& environment_;
  FlagNames flags_;
  std::vector<std::pair<std::string, std::string>> uploads_;  // Artifact and file.
  std::unique_ptr<Session> session_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_COMMAND_CONTEXT_H_
