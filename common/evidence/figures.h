#ifndef PLUMBLINE_COMMON_EVIDENCE_FIGURES_H_
#define PLUMBLINE_COMMON_EVIDENCE_FIGURES_H_

#include <map>
#include <string>

#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {

// The figures of a report, SVG by file name: of a block replay error by node and times, of a full
// model the bound ratio and the error of the blocks' outputs by block, of a generation latent drift
// and time by step, of two generations quality by frame. Where several tasks have a figure, the
// names end in the task's number, from 1.
std::map<std::string, std::string> Figures(const v1::Report& report);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_FIGURES_H_
