#ifndef PLUMBLINE_WORKER_JOBS_TASK_FAILURE_H_
#define PLUMBLINE_WORKER_JOBS_TASK_FAILURE_H_

#include "absl/status/status.h"
#include "proto/plumbline/v1/worker_service.pb.h"

namespace plumbline::jobs {

// The failure of a task whose job ended with `status`, an error: its class decides whether the
// coordinator tries the task again. Only what another worker, or another time, can put right is
// tried again.
v1::TaskFailure MakeTaskFailure(const absl::Status& status);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_TASK_FAILURE_H_
