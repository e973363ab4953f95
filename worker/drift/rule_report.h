#ifndef PLUMBLINE_WORKER_DRIFT_RULE_REPORT_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_REPORT_H_

#include "proto/plumbline/v1/full_model.pb.h"

namespace plumbline::drift {

// Two rules side by side: both, and for every tensor that either has the two bounds, the largest
// ratio of the two (of whichever is larger) first, those that only one rule has before all; equals
// by name.
v1::RuleReport CompareRules(const v1::Rule& a, const v1::Rule& b);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_REPORT_H_
