#ifndef PLUMBLINE_COMMON_EVIDENCE_ERROR_TABLE_H_
#define PLUMBLINE_COMMON_EVIDENCE_ERROR_TABLE_H_

#include <string>

#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {

// Errors against golden of every tensor that the tasks of a block replay or a full model compared,
// as CSV (RFC 4180): one line for each tensor and side, in execution order. `bound`, `bound_ratio`
// and `passed` stand on the candidate's lines, the first two where a rule gives them.
std::string ErrorTableCsv(const v1::Report& report);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_ERROR_TABLE_H_
