#ifndef PLUMBLINE_SERVER_API_REPORT_H_
#define PLUMBLINE_SERVER_API_REPORT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job_service.pb.h"
#include "server/store/store.h"

namespace plumbline::server {

// A page of the report of a job, or of one of its tasks. NOT_FOUND where the task is none;
// FAILED_PRECONDITION (JOB_NOT_FINISHED) where a task's report is asked for that is not there yet.
absl::StatusOr<v1::GetReportResponse> ReadReportPage(const Store& store, int64_t job,
                                                     std::optional<int32_t> task,
                                                     const std::string& page_token,
                                                     int64_t max_bytes);

// Two reports side by side. Tasks are told apart by their titles, entries by their names.
v1::JobComparison CompareReports(const v1::Report& a, const v1::Report& b);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_REPORT_H_
