#ifndef PLUMBLINE_WORKER_SELFTEST_SELFTEST_H_
#define PLUMBLINE_WORKER_SELFTEST_SELFTEST_H_

#include <functional>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/jobs/job.h"

namespace plumbline::selftest {

// Does a job as the worker does its tasks.
using RunJobFunction = std::function<absl::StatusOr<jobs::JobResult>(
    const v1::JobSpec& spec, const jobs::JobEnvironment& environment)>;

// Holds the worker against every capture that it carries and every negative control that there is,
// on its own device: a row of the report for each. The verdict names the first that is not as
// expected. What cannot be run at all fails its row. Errors: CANCELLED, and files that cannot be
// written.
absl::StatusOr<jobs::JobResult> RunSelftest(const jobs::JobEnvironment& environment,
                                            const RunJobFunction& run_job);

}  // namespace plumbline::selftest

#endif  // PLUMBLINE_WORKER_SELFTEST_SELFTEST_H_
