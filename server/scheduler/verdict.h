#ifndef PLUMBLINE_SERVER_SCHEDULER_VERDICT_H_
#define PLUMBLINE_SERVER_SCHEDULER_VERDICT_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/plumbline/v1/drift.pb.h"

namespace plumbline::server {

// The verdict of a job from those of its tasks, in task order, each with its title: FAILED if one
// failed, else PARTIAL if one is, else PASSED if one did, else NOT_JUDGED. The sentence is that of
// the task that decided, with its title where there are several tasks.
v1::Verdict CombineVerdicts(const std::vector<std::pair<std::string, v1::Verdict>>& tasks);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_VERDICT_H_
