#ifndef PLUMBLINE_CLIENT_SLURM_COMMANDS_H_
#define PLUMBLINE_CLIENT_SLURM_COMMANDS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command_line.h"
#include "client/environment.h"
#include "client/exit_status.h"

// `plumbline cluster slurm ...`: they run Slurm's own programs on this machine.

namespace plumbline::client {

// Submits the workers and prints the job's number. `connect` finds out whether the coordinator of
// `line` answers, which nodes are not waited for to find out.
absl::StatusOr<ExitStatus> DoSubmitSlurmWorkers(const SubmitSlurmWorkers& command,
                                                const CommandLine& line,
                                                const std::function<absl::Status()>& connect,
                                                const Environment& environment);
absl::StatusOr<ExitStatus> DoShowSlurmWorkers(const ShowSlurmWorkers& command,
                                              const Environment& environment);
absl::StatusOr<ExitStatus> DoCancelSlurmWorkers(const CancelSlurmWorkers& command,
                                                const Environment& environment);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_COMMANDS_H_
