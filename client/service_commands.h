#ifndef PLUMBLINE_CLIENT_SERVICE_COMMANDS_H_
#define PLUMBLINE_CLIENT_SERVICE_COMMANDS_H_

#include "absl/status/statusor.h"
#include "client/command_context.h"
#include "client/command_line.h"
#include "client/exit_status.h"

// Commands that look at what a coordinator has, and steer it; and the list of faults, which needs
// none. Errors are those of what was typed and of the service.

namespace plumbline::client {

absl::StatusOr<ExitStatus> Do(const ListJobs& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const GetJob& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const WatchJobCommand& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const CancelJob& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const CompareJobs& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const DeleteJobs& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const ShowReport& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const ListWorkers& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const DrainWorker& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const ListFaults& command, CommandContext* context);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SERVICE_COMMANDS_H_
