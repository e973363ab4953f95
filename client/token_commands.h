#ifndef PLUMBLINE_CLIENT_TOKEN_COMMANDS_H_
#define PLUMBLINE_CLIENT_TOKEN_COMMANDS_H_

#include "absl/status/statusor.h"
#include "client/command_line.h"
#include "client/environment.h"
#include "client/exit_status.h"

// `plumbline token ...`: they change an access file of this machine and connect to nobody.

namespace plumbline::client {

absl::StatusOr<ExitStatus> DoCreateToken(const CreateToken& command,
                                         const Environment& environment);
absl::StatusOr<ExitStatus> DoListTokens(const ListTokens& command, const Environment& environment);
absl::StatusOr<ExitStatus> DoRevokeToken(const RevokeToken& command,
                                         const Environment& environment);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_TOKEN_COMMANDS_H_
