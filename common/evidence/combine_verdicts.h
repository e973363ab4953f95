#ifndef PLUMBLINE_COMMON_EVIDENCE_COMBINE_VERDICTS_H_
#define PLUMBLINE_COMMON_EVIDENCE_COMBINE_VERDICTS_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/plumbline/v1/drift.pb.h"

namespace plumbline {

// The verdict of a job from those of its tasks, in task order, each with its title: FAILED if one
// failed, else PARTIAL if one is, else PASSED if one did, else NOT_JUDGED. The sentence is that of
// the task that decided, with its title where there are several tasks.
v1::Verdict CombineVerdicts(const std::vector<std::pair<std::string, v1::Verdict>>& tasks);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_COMBINE_VERDICTS_H_
