#ifndef PLUMBLINE_CLIENT_RUN_COMMANDS_H_
#define PLUMBLINE_CLIENT_RUN_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/command_line.h"
#include "client/environment.h"
#include "client/exit_status.h"
#include "client/session.h"

// `plumbline runs ...`, each over a session that is connected. Errors are the service's.

namespace plumbline::client {

// The frames and samples that a generation kept of a run, whose first characters are enough.
// INVALID_ARGUMENT on `flag` if no job has any.
absl::StatusOr<v1::InputFile> FindRunMedia(absl::string_view flag, const std::string& written,
                                           Session* session);

absl::StatusOr<ExitStatus> DoListRuns(const ListRuns& command, Session* session,
                                      const Output& output);
absl::StatusOr<ExitStatus> DoShowRun(const ShowRun& command, Session* session,
                                     const Output& output);
absl::StatusOr<ExitStatus> DoVerifyRun(const VerifyRun& command, Session* session,
                                       const Output& output);
absl::StatusOr<ExitStatus> DoCompareRuns(const CompareRuns& command, Session* session,
                                         const Output& output);
absl::StatusOr<ExitStatus> DoAdoptRun(const AdoptRun& command, Session* session,
                                      const Output& output);
absl::StatusOr<ExitStatus> DoDeleteRuns(const DeleteRuns& command, Session* session,
                                        const Output& output);
absl::StatusOr<ExitStatus> DoBackupRuns(const BackupRuns& command, Session* session,
                                        const Output& output);

// The whole name of the run that was meant by its name, its ID or the ID's first characters, after
// `flag`, which errors name.
absl::StatusOr<std::string> FindRunName(absl::string_view flag, const std::string& written,
                                        Session* session);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_RUN_COMMANDS_H_
