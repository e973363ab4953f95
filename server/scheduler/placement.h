#ifndef PLUMBLINE_SERVER_SCHEDULER_PLACEMENT_H_
#define PLUMBLINE_SERVER_SCHEDULER_PLACEMENT_H_

#include <string>
#include <vector>

#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/worker.pb.h"

// Which worker can do which task.

namespace plumbline::server {

// Empty if `worker` has all that `needs` asks for; else the first thing that it lacks, as the end
// of a sentence that begins with the worker's name, e.g. "has a CPU".
std::string WhatIsMissing(const v1::Placement& needs, const v1::Worker& worker);

inline bool Fits(const v1::Placement& needs, const v1::Worker& worker) {
  return WhatIsMissing(needs, worker).empty();
}

// Why a task with these needs is not running, given the workers that take tasks: BUSY where some
// fit, else NO_WORKER, MEMORY (where memory alone is too small) or NO_FIT.
v1::WaitingReason WhyWaiting(const v1::Placement& needs,
                             const std::vector<const v1::Worker*>& workers);

// A person's form of a number of bytes, e.g. "81.2 GB".
std::string FormatBytes(int64_t bytes);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_PLACEMENT_H_
