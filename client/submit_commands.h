#ifndef PLUMBLINE_CLIENT_SUBMIT_COMMANDS_H_
#define PLUMBLINE_CLIENT_SUBMIT_COMMANDS_H_

#include "absl/status/statusor.h"
#include "client/command_context.h"
#include "client/command_line.h"
#include "client/exit_status.h"

// Commands that make a job, each from what was typed to what the job's verdict makes of it. Errors
// are those of what was typed, of files, and of the service.

namespace plumbline::client {

absl::StatusOr<ExitStatus> Do(const SubmitBlockReplay& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const SubmitFullModel& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const SubmitSweep& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const SubmitGeneration& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const SubmitDiagnostic& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const DecodeLatents& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const ShowRule& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const SealRule& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const CompareRules& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const RecomputeVerdict& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const VerifyCheckpoint& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const WriteManifest& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const Selftest& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const CompareFiles& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const CompareMedia& command, CommandContext* context);
absl::StatusOr<ExitStatus> Do(const BuildLayout& command, CommandContext* context);

// As Do, over the context's connection where it has one.
absl::StatusOr<ExitStatus> DoCompareMedia(const CompareMedia& command, CommandContext* context);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SUBMIT_COMMANDS_H_
