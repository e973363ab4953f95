#include "client/service_commands.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/flag_names.h"
#include "client/job_bundle.h"
#include "client/job_text.h"
#include "client/measure_text.h"
#include "client/output_check.h"
#include "client/report_text.h"
#include "client/watch.h"
#include "common/status.h"
#include "common/vocabulary.h"

namespace plumbline::client {
namespace {

using Jobs = v1::JobService::StubInterface;
using Admin = v1::AdminService::StubInterface;
using Result = absl::StatusOr<ExitStatus>;

constexpr int kPageSize = 1000;

// An API enum's value from the word that people write, e.g. "block-replay". INVALID_ARGUMENT lists
// the words.
template <typename Enum>
absl::StatusOr<Enum> ParseWord(absl::string_view flag, absl::string_view word,
                               absl::string_view prefix, bool (*parse)(absl::string_view, Enum*),
                               std::string (*name)(Enum), int count) {
  const std::string upper = absl::StrReplaceAll(absl::AsciiStrToUpper(word), {{"-", "_"}});
  Enum value = {};
  if (parse(absl::StrCat(prefix, upper), &value) && value != Enum{}) return value;
  std::vector<std::string> words;
  for (int i = 1; i < count; ++i) words.push_back(name(static_cast<Enum>(i)));
  return FieldError(flag, absl::StrCat("unknown ", Quoted(word)), absl::StrJoin(words, ", "));
}

absl::StatusOr<v1::JobKind> ParseKind(absl::string_view flag, absl::string_view word) {
  return ParseWord<v1::JobKind>(
      flag, word, "JOB_KIND_",
      +[](absl::string_view name, v1::JobKind* value) {
        return v1::JobKind_Parse(std::string(name), value);
      },
      &JobKindText, v1::JobKind_ARRAYSIZE);
}

absl::StatusOr<v1::Job> FetchJob(CommandContext* context, const std::string& job) {
  v1::GetJobRequest request;
  request.set_name(JobName(job));
  return WithFlags(context->session()->Call(&Jobs::GetJob, request), {{"name", "JOB"}});
}

Result PrintJson(CommandContext* context, const google::protobuf::Message& message) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string json, MessageJson(message));
  context->output().Print(json);
  return kExitPassed;
}

}  // namespace

Result Do(const ListJobs& command, CommandContext* context) {
  v1::ListJobsRequest request;
  v1::JobFilter& filter = *request.mutable_filter();
  for (const std::string& word : command.kinds) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobKind kind, ParseKind("--kind", word));
    filter.add_kinds(kind);
  }
  for (const std::string& word : command.states) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobState state,
                               ParseWord<v1::JobState>(
                                   "--state", word, "JOB_STATE_",
                                   +[](absl::string_view name, v1::JobState* value) {
                                     return v1::JobState_Parse(std::string(name), value);
                                   },
                                   &JobStateText, v1::JobState_ARRAYSIZE));
    filter.add_states(state);
  }
  for (const std::string& label : command.labels) {
    PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--label", label, "K=V"));
    if (!filter.mutable_labels()->insert({pair.first, pair.second}).second) {
      return FieldError("--label", absl::StrCat(Quoted(pair.first), " is given twice"),
                        "each key once");
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  std::vector<v1::Job> jobs;
  do {
    request.set_page_size(std::min<int>(kPageSize, command.limit - static_cast<int>(jobs.size())));
    PLUMBLINE_ASSIGN_OR_RETURN(
        const v1::ListJobsResponse page,
        WithFlags(context->session()->Call(&Jobs::ListJobs, request), {{"page_size", "--limit"}}));
    jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(jobs.size()) < command.limit);
  context->output().Print(JobTableText(jobs, context->style()));
  return kExitPassed;
}

Result Do(const GetJob& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(context, command.job));
  if (command.format != "json") {
    context->output().Print(JobText(job, context->style()));
    return kExitPassed;
  }
  return PrintJson(context, job);
}

Result Do(const WatchJobCommand& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  const std::string name = JobName(command.job);
  absl::Status printed = absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const WatchResult watched,
      WithFlags(WatchJob(context->session(), name, command.after,
                         [&](const v1::JobEvent& event) {
                           if (command.format == "json") {
                             absl::StatusOr<std::string> json = MessageJsonLine(event);
                             if (json.ok()) {
                               context->output().Print(absl::StrCat(*json, "\n"));
                             } else if (printed.ok()) {
                               printed = json.status();
                             }
                           } else if (HasLine(event)) {
                             context->output().Print(
                                 absl::StrCat(EventText(event, context->style()), "\n"));
                           }
                         }),
                {{"name", "JOB"}, {"after_sequence", "--after"}}));
  PLUMBLINE_RETURN_IF_ERROR(printed);
  if (watched.end == WatchEnd::kInterrupted) return kExitInterrupted;
  if (watched.end != WatchEnd::kFinished) {
    return absl::FailedPreconditionError(absl::StrCat(name, " waits: ", watched.message));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(context, name));
  PLUMBLINE_RETURN_IF_ERROR(ErrorOf(job));
  return ExitStatusOf(job.verdict());
}

Result Do(const CancelJob& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  v1::CancelJobRequest request;
  request.set_name(JobName(command.job));
  request.set_reason(command.reason);
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job,
                             WithFlags(context->session()->Call(&Jobs::CancelJob, request),
                                       {{"name", "JOB"}, {"reason", "--reason"}}));
  context->output().Print(
      absl::StrCat(job.name(), job.state() == v1::JOB_STATE_CANCELLED
                                   ? " is cancelled\n"
                                   : " will be cancelled at its worker's next heartbeat\n"));
  return kExitPassed;
}

Result Do(const CompareJobs& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  v1::CompareJobsRequest request;
  request.set_a(JobName(command.a));
  request.set_b(JobName(command.b));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const v1::JobComparison comparison,
      WithFlags(context->session()->Call(&Jobs::CompareJobs, request), {{"a", "A"}, {"b", "B"}}));
  if (command.format == "json") return PrintJson(context, comparison);
  context->output().Print(JobComparisonText(comparison, context->style()));
  return kExitPassed;
}

Result Do(const DeleteJobs& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  for (const std::string& job : command.jobs) {
    v1::DeleteJobRequest request;
    request.set_name(JobName(job));
    PLUMBLINE_RETURN_IF_ERROR(
        WithFlags(context->session()->Call(&Jobs::DeleteJob, request).status(), {{"name", "JOB"}}));
    context->output().Print(absl::StrCat(request.name(), " is deleted\n"));
  }
  return kExitPassed;
}

Result Do(const ShowReport& command, CommandContext* context) {
  if (!command.bundle.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(CheckBundleFolder("--bundle", command.bundle));
    PLUMBLINE_RETURN_IF_ERROR(ReadSigningKey(context->line().signing_key).status());
  }
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const v1::Report report,
      WithFlags(FetchReport(context->session(), JobName(command.job)), {{"name", "JOB"}}));
  if (command.format == "json") {
    PLUMBLINE_RETURN_IF_ERROR(PrintJson(context, report).status());
  } else {
    context->output().Print(ReportText(report, context->style()));
  }
  if (!command.bundle.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(context, command.job));
    PLUMBLINE_RETURN_IF_ERROR(WriteJobBundle(context->session(), report, job,
                                             context->line().signing_key, command.bundle));
  }
  return ExitStatusOf(report.verdict());
}

Result Do(const ListWorkers&, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  v1::ListWorkersRequest request;
  std::vector<v1::Worker> workers;
  do {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::ListWorkersResponse page,
                               context->session()->Call(&Admin::ListWorkers, request));
    workers.insert(workers.end(), page.workers().begin(), page.workers().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  context->output().Print(WorkerTableText(workers, context->style()));
  return kExitPassed;
}

Result Do(const DrainWorker& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/false));
  v1::DrainWorkerRequest request;
  request.set_name(WorkerName(command.worker));
  request.set_reason(command.reason);
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Worker worker,
                             WithFlags(context->session()->Call(&Admin::DrainWorker, request),
                                       {{"name", "WORKER"}, {"reason", "--reason"}}));
  context->output().Print(absl::StrCat(worker.name(), " takes no more tasks\n"));
  return kExitPassed;
}

Result Do(const ListFaults& command, CommandContext* context) {
  std::string lines;
  const auto list = [&](absl::Span<const FaultInfo> faults) {
    for (const FaultInfo& fault : faults) {
      absl::StrAppend(&lines, fault.name, "\t", fault.expected_entry, "\t", fault.sentence, "\n");
    }
  };
  std::vector<FaultInfo> of_kind;
  for (const FaultInfo& fault : Faults()) {
    if (command.job_kind.empty() || fault.job == command.job_kind) of_kind.push_back(fault);
  }
  list(of_kind);
  // Those that no layout of one's own shows are listed by what shows them.
  if (command.job_kind.empty() || command.job_kind == kSweepLayouts) list(SweepFaults());
  // No fault: a kind without any, or no kind at all.
  if (lines.empty()) PLUMBLINE_RETURN_IF_ERROR(ParseKind("--job", command.job_kind).status());
  context->output().Print(lines);
  return kExitPassed;
}

}  // namespace plumbline::client
