#ifndef PLUMBLINE_CLIENT_SLURM_REQUEST_H_
#define PLUMBLINE_CLIENT_SLURM_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/command_line.h"

// What `plumbline cluster slurm` asks of Slurm's own programs, as command lines. Pure functions.

namespace plumbline::client {

// `sbatch` and its arguments up to the script, the script's path, and the script's own arguments.
// `command` has its defaults filled in. INVALID_ARGUMENT names the flag that is wrong: what Slurm
// itself would refuse is left to it.
absl::StatusOr<std::vector<std::string>> SbatchCommand(const SubmitSlurmWorkers& command,
                                                       absl::string_view server,
                                                       const std::string& script);

// Where the workers' output goes, "*" standing for the number of a worker.
std::string SlurmLogPattern(const SubmitSlurmWorkers& command, absl::string_view job);

// The job of `sbatch --parsable`'s output "JOB" or "JOB;CLUSTER"; INTERNAL for anything else.
absl::StatusOr<std::string> ParseSbatchOutput(absl::string_view output);

// `squeue` for these jobs, or for the user's jobs of this name if there are none. INVALID_ARGUMENT
// for what is no job.
absl::StatusOr<std::vector<std::string>> SqueueCommand(const ShowSlurmWorkers& command);
// `scancel` likewise.
absl::StatusOr<std::vector<std::string>> ScancelCommand(const CancelSlurmWorkers& command);

// One line of SqueueCommand's output.
struct SlurmWorkerRow {
  std::string job;  // "12_0"
  std::string state;
  std::string partition;
  std::string node;  // Empty while it waits.
  std::string restarts;
  std::string reason;  // Why it waits.
};

// Lines without the columns that were asked for are left out.
std::vector<SlurmWorkerRow> ParseSqueueOutput(absl::string_view output);

// The words as a POSIX shell would have to be given them.
std::string ShellText(const std::vector<std::string>& words);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_REQUEST_H_
