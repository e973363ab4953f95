#ifndef PLUMBLINE_CLIENT_REPORT_TEXT_H_
#define PLUMBLINE_CLIENT_REPORT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/style.h"
#include "google/protobuf/message.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// The whole report for a person; ends with the verdict in one sentence and `first_failure`.
std::string ReportText(const v1::Report& report, const Style& style);

// The message's JSON with proto field names and defaults printed; the form of `report.json`.
absl::StatusOr<std::string> ReportJson(const v1::Report& report);

// The same of any message, e.g. a job.
absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message);

// The same in one line, without a newline, and without defaults.
absl::StatusOr<std::string> MessageJsonLine(const google::protobuf::Message& message);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_REPORT_TEXT_H_
