#ifndef PLUMBLINE_COMMON_EVIDENCE_REDACT_H_
#define PLUMBLINE_COMMON_EVIDENCE_REDACT_H_

#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {

// Takes out of `report` what says where it was made and by whom: workers, their incarnations and
// labels, labels and placement of the job, messages of attempts, paths of files and of the
// checkpoint, whose digest the identities hold. Nothing that a verdict is computed from.
void Redact(v1::Report* report);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_REDACT_H_
