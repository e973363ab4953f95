#include "client/command_context.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/error_text.h"
#include "client/output_check.h"
#include "client/server_connector.h"
#include "common/status.h"

namespace plumbline::client {

absl::Status CommandContext::Connect(bool needs_worker) {
  absl::StatusOr<std::unique_ptr<Connector>> connector = line_.server.server.empty()
                                                             ? environment_.embedded(needs_worker)
                                                             : NewServerConnector(line_.server);
  if (!connector.ok()) return connector.status();
  SessionOptions options;
  options.on_lost = [this](const std::string& message) {
    if (output().error_is_terminal) output().PrintError("\r\033[K");
    output().PrintError(absl::StrCat(message, "\n"));
  };
  session_ = std::make_unique<Session>(*std::move(connector), environment_.clock,
                                       environment_.interrupt, std::move(options));
  return session_->Connect();
}

JobRunner CommandContext::Runner() {
  return JobRunner(session_.get(), &environment_, line_.server.server, line_.signing_key);
}

// Names of uploads in an error mean nothing to who typed the files' names.
absl::Status CommandContext::WithFileNames(const absl::Status& status) const {
  if (uploads_.empty()) return status;
  absl::Status renamed(status.code(), absl::StrReplaceAll(status.message(), uploads_));
  std::vector<FieldViolation> violations = GetFieldViolations(status);
  for (FieldViolation& violation : violations) {
    violation.field = absl::StrReplaceAll(violation.field, uploads_);
    violation.description = absl::StrReplaceAll(violation.description, uploads_);
  }
  return violations.empty() ? renamed : WithFieldViolations(std::move(renamed), violations);
}

std::string CommandContext::ErrorTextOf(const absl::Status& status) const {
  return ErrorText(WithFileNames(status), flags_, output().error_style);
}

absl::StatusOr<v1::InputFile> CommandContext::NoInput(absl::string_view, absl::string_view) {
  return v1::InputFile();
}

absl::StatusOr<v1::InputFile> CommandContext::Resolve(absl::string_view flag,
                                                      absl::string_view written) {
  v1::InputFile input;
  std::error_code error;
  if (absl::StartsWith(written, "artifacts/") &&
      !std::filesystem::exists(std::string(written), error)) {
    input.set_artifact(std::string(written));
    return input;
  }
  if (ParseWorkerPath(written, path_style(), &input)) return input;
  return Upload(flag, written, UploadKind::kInput);
}

absl::StatusOr<v1::InputFile> CommandContext::Upload(absl::string_view flag,
                                                     absl::string_view written, UploadKind kind) {
  v1::InputFile input;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string artifact,
                             UploadFile(session_.get(), flag, std::string(written), kind));
  input.set_artifact(artifact);
  uploads_.emplace_back(artifact, std::string(written));
  return input;
}

absl::Status CommandContext::AddPlugins(const std::vector<std::string>& plugins,
                                        JobRequest* request) {
  for (const std::string& file : plugins) {
    request->flags.AddFile(absl::StrCat("plugins[", request->spec.plugins_size(), "]"), "--plugin",
                           file);
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string artifact,
                               UploadFile(session_.get(), "--plugin", file, UploadKind::kPlugin));
    request->spec.add_plugins()->set_artifact(artifact);
    uploads_.emplace_back(artifact, file);
  }
  request->flags.Add("plugins", "--plugin", "");
  NoteFlags(request->flags);
  return absl::OkStatus();
}

absl::Status CommandContext::CheckOutputs(const JobRequest& bare) {
  NoteFlags(bare.flags);
  return client::CheckOutputs(bare, line_.signing_key);
}

absl::StatusOr<ExitStatus> CommandContext::Submit(bool asks_first,
                                                  const std::vector<std::string>& plugins,
                                                  const MakeRequest& make) {
  return Submit(asks_first, plugins, UploadKind::kInput, make);
}

absl::StatusOr<ExitStatus> CommandContext::SubmitFiles(const MakeRequest& make, UploadKind kind) {
  return Submit(/*asks_first=*/false, /*plugins=*/{}, kind, make);
}

absl::StatusOr<ExitStatus> CommandContext::Submit(bool asks_first,
                                                  const std::vector<std::string>& plugins,
                                                  UploadKind kind, const MakeRequest& make) {
  PLUMBLINE_ASSIGN_OR_RETURN(JobRequest bare, make(&NoInput));
  bare.spec = WithoutInputs(std::move(bare.spec));
  PLUMBLINE_RETURN_IF_ERROR(CheckOutputs(bare));
  PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
  if (asks_first || !plugins.empty()) PLUMBLINE_RETURN_IF_ERROR(Runner().Validate(bare));
  PLUMBLINE_ASSIGN_OR_RETURN(
      JobRequest request, make([this, kind](absl::string_view flag, absl::string_view written) {
        return kind == UploadKind::kInput ? Resolve(flag, written) : Upload(flag, written, kind);
      }));
  PLUMBLINE_RETURN_IF_ERROR(AddPlugins(plugins, &request));
  return Runner().Run(request);
}

}  // namespace plumbline::client
