#include "client/token_commands.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/flag_names.h"
#include "client/table.h"
#include "common/access/access_file.h"
#include "common/access/token.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

std::string DayAndTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone());
}

std::string StateText(const AccessEntry& entry, absl::Time now) {
  if (entry.revoked <= now) return absl::StrCat("revoked ", DayAndTime(entry.revoked));
  if (entry.expires <= now) return absl::StrCat("expired ", DayAndTime(entry.expires));
  if (entry.expires == absl::InfiniteFuture()) return "good";
  return absl::StrCat("good until ", DayAndTime(entry.expires));
}

}  // namespace

absl::StatusOr<ExitStatus> DoCreateToken(const CreateToken& command,
                                         const Environment& environment) {
  AccessEntry entry;
  entry.name = command.name;
  PLUMBLINE_ASSIGN_OR_RETURN(entry.role, ParseRole(command.role, "--role"));
  entry.certificate = command.certificate;
  entry.created = environment.clock->Now();
  if (!command.expires.empty()) {
    absl::Duration lifetime;
    if (!absl::ParseDuration(command.expires, &lifetime) || lifetime <= absl::ZeroDuration()) {
      return FieldError("--expires", absl::StrCat(Quoted(command.expires), " is no duration"),
                        "e.g. 720h");
    }
    entry.expires = entry.created + lifetime;
  }
  PLUMBLINE_ASSIGN_OR_RETURN(AccessFile file,
                             LoadAccessFile(command.file, /*may_be_missing=*/true));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string token,
                             WithFlags(AddAccess(std::move(entry), &file),
                                       {{"name", "--name"}, {"certificate", "--certificate"}}));
  PLUMBLINE_RETURN_IF_ERROR(SaveAccessFile(command.file, file));
  if (token.empty()) {
    environment.output.PrintError(
        absl::StrCat("certificates of ", command.certificate, " are ", command.name, " now\n"));
  } else {
    // Into a file or a pipe it goes without a word about a line that is not beneath.
    if (environment.output.out_is_terminal) {
      environment.output.PrintError("the token is shown this once:\n");
    }
    environment.output.Print(absl::StrCat(token, "\n"));
  }
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoListTokens(const ListTokens& command, const Environment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const AccessFile file, LoadAccessFile(command.file));
  Table table({{"name"}, {"role"}, {"token or certificate"}, {"created"}, {"state"}});
  const absl::Time now = environment.clock->Now();
  for (const AccessEntry& entry : file.entries) {
    table.AddRow({entry.name, RoleName(entry.role),
                  entry.certificate.empty() ? absl::StrCat("plumbline_", entry.id, "_...")
                                            : absl::StrCat("CN=", entry.certificate),
                  DayAndTime(entry.created), StateText(entry, now)});
  }
  environment.output.Print(table.Render(environment.output.out_style));
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoRevokeToken(const RevokeToken& command,
                                         const Environment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(AccessFile file, LoadAccessFile(command.file));
  PLUMBLINE_RETURN_IF_ERROR(
      WithFlags(RevokeAccess(command.name, environment.clock->Now(), &file), {{"name", "NAME"}}));
  PLUMBLINE_RETURN_IF_ERROR(SaveAccessFile(command.file, file));
  return kExitPassed;
}

}  // namespace plumbline::client
