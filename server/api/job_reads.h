#ifndef PLUMBLINE_SERVER_API_JOB_READS_H_
#define PLUMBLINE_SERVER_API_JOB_READS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/job.pb.h"
#include "server/api/api.h"

// Jobs as callers see them: what is durable, and what only memory knows of the present.

namespace plumbline::server {

// Number of "jobs/{job}". INVALID_ARGUMENT names `field`; NOT_FOUND.
absl::StatusOr<int64_t> FindJob(const Api& api, absl::string_view name, absl::string_view field);

// With tasks and artifacts.
absl::StatusOr<v1::Job> ReadWholeJob(const Api& api, int64_t number);

// `job`, as it is stored, as lists show it.
absl::Status CompleteListedJob(const Api& api, int64_t number, v1::Job* job);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_JOB_READS_H_
