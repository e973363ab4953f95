#include "client/commands.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/command_context.h"
#include "client/exit_status.h"
#include "client/run_commands.h"
#include "client/service_commands.h"
#include "client/slurm_commands.h"
#include "client/submit_commands.h"
#include "client/token_commands.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

using Result = absl::StatusOr<ExitStatus>;

template <typename RunsCommand>
Result DoWithRuns(const RunsCommand& command, CommandContext* context,
                  Result (*run)(const RunsCommand&, Session*, const Output&)) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  return run(command, context->session(), context->output());
}

Result Do(const ListRuns& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoListRuns);
}
Result Do(const ShowRun& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoShowRun);
}
Result Do(const VerifyRun& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoVerifyRun);
}
Result Do(const AdoptRun& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoAdoptRun);
}
Result Do(const DeleteRuns& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoDeleteRuns);
}
Result Do(const BackupRuns& command, CommandContext* context) {
  return DoWithRuns(command, context, &DoBackupRuns);
}

Result Do(const CompareRuns& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/command.media));
  PLUMBLINE_ASSIGN_OR_RETURN(const ExitStatus steps,
                             DoCompareRuns(command, context->session(), context->output()));
  if (!command.media) return steps;
  CompareMedia media;
  PLUMBLINE_ASSIGN_OR_RETURN(media.a, FindRunName("A", command.a, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(media.b, FindRunName("B", command.b, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(const ExitStatus quality, DoCompareMedia(media, context));
  return quality == kExitPassed ? steps : quality;
}

Result Do(const CreateToken& command, CommandContext* context) {
  return DoCreateToken(command, context->environment());
}
Result Do(const ListTokens& command, CommandContext* context) {
  return DoListTokens(command, context->environment());
}
Result Do(const RevokeToken& command, CommandContext* context) {
  return DoRevokeToken(command, context->environment());
}

Result Do(const SubmitSlurmWorkers& command, CommandContext* context) {
  return DoSubmitSlurmWorkers(
      command, context->line(), [context] { return context->Connect(/*needs_worker=*/false); },
      context->environment());
}
Result Do(const ShowSlurmWorkers& command, CommandContext* context) {
  return DoShowSlurmWorkers(command, context->environment());
}
Result Do(const CancelSlurmWorkers& command, CommandContext* context) {
  return DoCancelSlurmWorkers(command, context->environment());
}

}  // namespace

int RunCommand(const CommandLine& line, const Environment& environment) {
  CommandContext context(line, environment);
  const Result result =
      std::visit([&](const auto& command) { return Do(command, &context); }, line.command);
  if (result.ok()) return *result;
  if (absl::IsCancelled(result.status()) && environment.interrupt->IsRaised()) {
    return kExitInterrupted;
  }
  environment.output.PrintError(absl::StrCat("plumbline: ", context.ErrorTextOf(result.status())));
  return ExitStatusOf(result.status());
}

namespace {

int ParseAndRun(int argc, const char* const* argv, const Environment& environment) {
  const auto parsed = ParseCommandLine(argc, argv);
  if (!parsed.ok()) {
    environment.output.PrintError(absl::StrCat(parsed.status().message(), "\n"));
    return kExitBadRequest;
  }
  if (const auto* help = std::get_if<HelpText>(&*parsed)) {
    environment.output.Print(help->text);
    return kExitPassed;
  }
  return RunCommand(std::get<CommandLine>(*parsed), environment);
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv, const Environment& environment) {
  const int status = ParseAndRun(argc, argv, environment);
  if (environment.output.PrintedAll()) return status;
  environment.output.PrintError(
      "plumbline: standard output did not take all that was printed; is its disk full?\n");
  return status == kExitPassed ? kExitServiceFailed : status;
}

}  // namespace plumbline::client
