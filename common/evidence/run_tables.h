#ifndef PLUMBLINE_COMMON_EVIDENCE_RUN_TABLES_H_
#define PLUMBLINE_COMMON_EVIDENCE_RUN_TABLES_H_

#include <string>

#include "proto/plumbline/v1/job.pb.h"

// What a report has beside errors against golden, as CSV (RFC 4180); "" where it has none.

namespace plumbline {

// Times: of block replays, candidate and provider in turn; of a generation's steps.
std::string TimingTableCsv(const v1::Report& report);

// Relative L2 of the latents after each step, candidate against what it was compared with.
std::string LatentDriftCsv(const v1::Report& report);

// Quality of each frame of two generations, candidate against reference.
std::string QualityCsv(const v1::Report& report);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_RUN_TABLES_H_
