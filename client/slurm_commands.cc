#include "client/slurm_commands.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/program.h"
#include "client/slurm_request.h"
#include "client/slurm_script.h"
#include "client/slurm_worker_check.h"
#include "client/table.h"
#include "common/files.h"
#include "common/host_and_port.h"
#include "common/random_id.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr char kScriptName[] = "plumbline-worker.sbatch";
constexpr char kWorkerProgram[] = "plumbline-worker";

absl::StatusOr<std::string> DefaultStateRoot() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != 0) {
    return absl::StrCat(state, "/plumbline/slurm");
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != 0) return absl::StrCat(home, "/.local/state/plumbline/slurm");
  return FieldError("--state-root", "is not set, and there is no HOME", "a folder of the nodes'");
}

absl::StatusOr<std::string> WorkerBesideThisProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path worker = self.parent_path() / kWorkerProgram;
  if (!error && std::filesystem::exists(worker, error)) return worker.string();
  return FieldError(
      "--worker", absl::StrCat("is not set, and no ", kWorkerProgram, " lies beside this program"),
      "plumbline-worker's path on the nodes, or its name if it is in their PATH");
}

// The job runs in other folders: paths are made absolute. A program's bare name stays one.
absl::StatusOr<SubmitSlurmWorkers> WithDefaults(SubmitSlurmWorkers command) {
  if (command.worker.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(command.worker, WorkerBesideThisProgram());
  }
  if (command.state_root.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(command.state_root, DefaultStateRoot());
  }
  if (command.log_dir.empty()) command.log_dir = command.state_root + "/logs";
  std::error_code error;
  for (std::string* path : {&command.worker, &command.state_root, &command.log_dir}) {
    if (path == &command.worker && !absl::StrContains(*path, '/')) continue;
    *path = std::filesystem::absolute(*path, error).lexically_normal().string();
    if (error) return absl::UnknownError(absl::StrCat(*path, ": ", error.message()));
  }
  return command;
}

// Lines in which one of Slurm's programs says that something is wrong.
std::string ErrorLines(absl::string_view text) {
  std::vector<absl::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "error: ")) lines.push_back(line);
  }
  return absl::StrJoin(lines, "\n");
}

// Runs one of Slurm's programs; what it says in anger is the error.
absl::StatusOr<ProgramResult> RunSlurm(const std::vector<std::string>& words) {
  absl::StatusOr<ProgramResult> result = RunProgram(words);
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        result.status().message(),
        ". It comes with Slurm: run this where the cluster's jobs are submitted from"));
  }
  PLUMBLINE_RETURN_IF_ERROR(result.status());
  if (result->exit_status == 0) return result;
  const absl::string_view said = absl::StripAsciiWhitespace(result->error);
  return absl::FailedPreconditionError(absl::StrCat(
      words[0], " ended with exit status ", result->exit_status, said.empty() ? "" : ":\n", said));
}

absl::Status MakeFolder(absl::string_view flag, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return FieldError(flag, FileError(path, "cannot make the folder", error.value()).message(),
                    "a folder that there is or that can be made");
}

// sbatch keeps a copy of the script.
absl::StatusOr<std::string> SubmitScript(const SubmitSlurmWorkers& command,
                                         const std::string& server) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error) /
                                       absl::StrCat("plumbline-", RandomIds()->NewId());
  if (error) return absl::UnknownError(absl::StrCat("no folder for files: ", error.message()));
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder("TMPDIR", folder.string()));
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  const std::string script = (folder / kScriptName).string();
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(script, SlurmScript()));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                             SbatchCommand(command, server, script));
  PLUMBLINE_ASSIGN_OR_RETURN(const ProgramResult result, RunSlurm(words));
  return ParseSbatchOutput(result.out);
}

}  // namespace

absl::StatusOr<ExitStatus> DoSubmitSlurmWorkers(const SubmitSlurmWorkers& command,
                                                const CommandLine& line,
                                                const std::function<absl::Status()>& connect,
                                                const Environment& environment) {
  const Output& output = environment.output;
  const std::string& server = line.server.server;
  // What was written is judged before what was left out.
  PLUMBLINE_RETURN_IF_ERROR(SbatchCommand(command, server, kScriptName).status());
  PLUMBLINE_ASSIGN_OR_RETURN(const SubmitSlurmWorkers complete, WithDefaults(command));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                             SbatchCommand(complete, server, kScriptName));
  if (IsLoopbackAddress(server)) {
    output.PrintError(absl::StrCat("note: at ", server,
                                   " a worker on another node looks for a coordinator of its own "
                                   "node\n"));
  }
  if (!complete.unchecked) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string note,
                               CheckSlurmWorker(complete.worker, server, complete.worker_flags));
    if (!note.empty()) output.PrintError(absl::StrCat(note, "\n"));
  }
  if (complete.dry_run) {
    output.Print(absl::StrCat(ShellText(words), "\n\n# ", kScriptName, ":\n", SlurmScript()));
    return kExitPassed;
  }
  if (!complete.unchecked) {
    absl::Status reached = connect();
    if (!reached.ok()) {
      return absl::Status(reached.code(),
                          absl::StrCat(reached.message(),
                                       "; nothing is submitted (--unchecked submits although the "
                                       "coordinator does not answer here)"));
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(MakeFolder("--log-dir", complete.log_dir));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string job, SubmitScript(complete, server));
  output.Print(absl::StrCat(job, "\n"));
  output.PrintError(absl::StrCat(complete.workers, complete.workers == 1 ? " worker" : " workers",
                                 " in job array ", job,
                                 "\n  state   plumbline cluster slurm status ", job,
                                 "\n  end     plumbline cluster slurm cancel ", job, "\n  output  ",
                                 SlurmLogPattern(complete, job), "\n"));
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoShowSlurmWorkers(const ShowSlurmWorkers& command,
                                              const Environment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> words, SqueueCommand(command));
  PLUMBLINE_ASSIGN_OR_RETURN(const ProgramResult result, RunSlurm(words));
  Table table({{"worker"},
               {"state"},
               {"partition"},
               {"node"},
               {"restarts", Table::Align::kRight},
               {"waits for"}});
  for (const SlurmWorkerRow& row : ParseSqueueOutput(result.out)) {
    table.AddRow({row.job, row.state, row.partition, row.node.empty() ? "-" : row.node,
                  row.restarts, row.reason.empty() ? "-" : row.reason});
  }
  environment.output.Print(table.empty() ? "no workers are queued or run\n"
                                         : table.Render(environment.output.out_style));
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoCancelSlurmWorkers(const CancelSlurmWorkers& command,
                                                const Environment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> words, ScancelCommand(command));
  PLUMBLINE_ASSIGN_OR_RETURN(const ProgramResult result, RunSlurm(words));
  if (const std::string errors = ErrorLines(result.error); !errors.empty()) {
    return absl::FailedPreconditionError(errors);
  }
  for (const std::string& job : command.jobs) {
    environment.output.Print(absl::StrCat(job, " is cancelled\n"));
  }
  return kExitPassed;
}

}  // namespace plumbline::client
