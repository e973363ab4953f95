#include "server/api/report.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/evidence/combine_verdicts.h"
#include "common/status.h"

namespace plumbline::server {

absl::StatusOr<v1::GetReportResponse> ReadReportPage(const Store& store, int64_t job,
                                                     std::optional<int32_t> task,
                                                     const std::string& page_token,
                                                     int64_t max_bytes) {
  int32_t index = task.value_or(0);
  if (!page_token.empty() && (!absl::SimpleAtoi(page_token, &index) || index < 0)) {
    return FieldError("page_token", absl::StrCat(Quoted(page_token), " is no page token"),
                      "one from an answer of this call");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, store.ReadJob(job));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<store::TaskRecord> tasks, store.ReadTasks(job));
  const int32_t end = task.has_value() ? *task + 1 : static_cast<int32_t>(tasks.size());
  if (end > static_cast<int32_t>(tasks.size())) {
    return WithReason(absl::NotFoundError(absl::StrCat(record.job().name(), " has ", tasks.size(),
                                                       " tasks, numbered from 0")),
                      "NOT_FOUND");
  }
  v1::GetReportResponse response;
  v1::Report& report = *response.mutable_report();
  if (page_token.empty()) {
    report.set_job(record.job().name());
    report.set_kind(record.job().kind());
    *report.mutable_spec() = record.job().spec();
    report.set_state(record.job().state());
    *report.mutable_create_time() = record.job().create_time();
    if (record.job().has_end_time()) *report.mutable_end_time() = record.job().end_time();
    std::vector<std::pair<std::string, v1::Verdict>> verdicts;
    for (int32_t i = index; i < end; ++i) {
      if (tasks[i].task().has_verdict()) {
        verdicts.emplace_back(tasks[i].task().title(), tasks[i].task().verdict());
      }
    }
    *report.mutable_verdict() = CombineVerdicts(verdicts);
  }
  int64_t bytes = static_cast<int64_t>(report.ByteSizeLong());
  for (; index < end; ++index) {
    absl::StatusOr<v1::TaskReport> each = store.ReadReport({job, index});
    if (absl::IsNotFound(each.status())) {
      if (!task.has_value()) continue;
      return WithReason(absl::FailedPreconditionError(
                            absl::StrCat(tasks[index].task().name(), " has no report: it is ",
                                         v1::JobState_Name(tasks[index].task().state()))),
                        "JOB_NOT_FINISHED");
    }
    PLUMBLINE_RETURN_IF_ERROR(each.status());
    bytes += static_cast<int64_t>(each->ByteSizeLong());
    // A page that would be too large ends, unless nothing at all would be on it.
    if (bytes > max_bytes && (report.tasks_size() > 0 || page_token.empty())) {
      response.set_next_page_token(absl::StrCat(index));
      break;
    }
    *report.add_tasks() = *std::move(each);
  }
  return response;
}

}  // namespace plumbline::server
