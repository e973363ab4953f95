#include "client/run_commands.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/flag_names.h"
#include "client/measure_text.h"
#include "client/report_text.h"
#include "client/run_text.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

using Store = v1::StoreService::StubInterface;
using Jobs = v1::JobService::StubInterface;

constexpr int kPageSize = 1000;

absl::StatusOr<v1::Run> GetRun(absl::string_view flag, const std::string& written,
                               Session* session) {
  v1::GetRunRequest request;
  request.set_name(absl::StartsWith(written, "runs/") ? written : absl::StrCat("runs/", written));
  return WithFlags(session->Call(&Store::GetRun, request), {{"name", flag}});
}

}  // namespace

absl::StatusOr<std::string> FindRunName(absl::string_view flag, const std::string& written,
                                        Session* session) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, GetRun(flag, written, session));
  return run.name();
}

absl::StatusOr<v1::InputFile> FindRunMedia(absl::string_view flag, const std::string& written,
                                           Session* session) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string run, FindRunName(flag, written, session));
  v1::ListJobsRequest list;
  list.mutable_filter()->add_kinds(v1::JOB_KIND_GENERATION);
  do {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::ListJobsResponse page,
                               session->Call(&Jobs::ListJobs, list));
    for (const v1::Job& listed : page.jobs()) {
      v1::GetJobRequest get;
      get.set_name(listed.name());
      const absl::StatusOr<v1::Job> job = session->Call(&Jobs::GetJob, get);
      if (absl::IsNotFound(job.status())) continue;  // Deleted meanwhile.
      if (!job.ok()) return job.status();
      for (const v1::Task& task : job->tasks()) {
        if (task.run() != run) continue;
        for (const v1::Artifact& artifact : job->artifacts()) {
          if (artifact.task() != task.name() || artifact.role() != v1::ARTIFACT_ROLE_FRAMES) {
            continue;
          }
          v1::InputFile media;
          media.set_artifact(artifact.name());
          return media;
        }
      }
    }
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  return FieldError(flag, absl::StrCat("no generation has kept frames of ", run),
                    "a run that was decoded");
}

absl::StatusOr<ExitStatus> DoListRuns(const ListRuns& command, Session* session,
                                      const Output& output) {
  v1::ListRunsRequest request;
  if (!command.job.empty()) request.set_job(JobName(command.job));
  std::vector<v1::Run> runs;
  v1::ListRunsResponse page;
  do {
    request.set_page_size(std::min<int>(kPageSize, command.limit - static_cast<int>(runs.size())));
    PLUMBLINE_ASSIGN_OR_RETURN(page, WithFlags(session->Call(&Store::ListRuns, request),
                                               {{"job", "--job"}, {"page_size", "--limit"}}));
    runs.insert(runs.end(), page.runs().begin(), page.runs().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(runs.size()) < command.limit);
  output.Print(RunTableText(runs, page, output.out_style));
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoShowRun(const ShowRun& command, Session* session,
                                     const Output& output) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, GetRun("RUN", command.run, session));
  if (command.format == "json") {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string json, MessageJson(run));
    output.Print(json);
  } else {
    output.Print(RunText(run, output.out_style));
  }
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoVerifyRun(const VerifyRun& command, Session* session,
                                       const Output& output) {
  v1::VerifyRunRequest request;
  PLUMBLINE_ASSIGN_OR_RETURN(*request.mutable_name(), FindRunName("RUN", command.run, session));
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::VerifyRunResponse verified,
                             session->Call(&Store::VerifyRun, request));
  output.Print(VerifyRunText(request.name(), verified, output.out_style));
  return verified.corruptions().empty() ? kExitPassed : kExitGateFailed;
}

absl::StatusOr<ExitStatus> DoCompareRuns(const CompareRuns& command, Session* session,
                                         const Output& output) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run a, GetRun("A", command.a, session));
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run b, GetRun("B", command.b, session));
  bool equal = false;
  output.Print(RunComparisonText(a, b, output.out_style, &equal));
  return equal ? kExitPassed : kExitGateFailed;
}

absl::StatusOr<ExitStatus> DoAdoptRun(const AdoptRun& command, Session* session,
                                      const Output& output) {
  v1::AdoptRunRequest request;
  PLUMBLINE_ASSIGN_OR_RETURN(*request.mutable_name(), FindRunName("RUN", command.run, session));
  request.set_from(std::string(absl::StripPrefix(command.from, "runs/")));
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, WithFlags(session->Call(&Store::AdoptRun, request),
                                                          {{"name", "RUN"}, {"from", "--from"}}));
  output.Print(absl::StrCat(run.name(), " has taken over ", run.saved_steps(), " steps of ",
                            run.adopted_from(), "\n"));
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoDeleteRuns(const DeleteRuns& command, Session* session,
                                        const Output& output) {
  for (const std::string& written : command.runs) {
    v1::DeleteRunRequest request;
    PLUMBLINE_ASSIGN_OR_RETURN(*request.mutable_name(), FindRunName("RUN", written, session));
    PLUMBLINE_RETURN_IF_ERROR(session->Call(&Store::DeleteRun, request).status());
    output.Print(absl::StrCat(request.name(), " is deleted\n"));
  }
  return kExitPassed;
}

absl::StatusOr<ExitStatus> DoBackupRuns(const BackupRuns&, Session* session, const Output& output) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::BackupResponse backup,
                             session->Call(&Store::Backup, v1::BackupRequest()));
  output.Print(absl::StrCat("Backup ", backup.backup_id(), ": ", BytesText(backup.size_bytes()),
                            ", as of ", TimeText(backup.time()), "\n"));
  return kExitPassed;
}

}  // namespace plumbline::client
