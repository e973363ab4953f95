#ifndef PLUMBLINE_WORKER_DRIFT_TRACE_CHECK_H_
#define PLUMBLINE_WORKER_DRIFT_TRACE_CHECK_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/identity.pb.h"

namespace plumbline::drift {

// Whether `actual` is what was asked for: the requested implementation, or a fused operation of it
// ("candidate/norm1_q_proj" for "candidate").
bool RanAsRequested(absl::string_view requested, absl::string_view actual);

// Nodes that did not execute or ran another implementation than requested, counted by the forward
// tensor of the inventory that their work enters first. A node that no such tensor is known for
// stands under its own name. `blocks` is what "block.*" stands for.
std::map<std::string, int> NodesNotRun(const v1::ImplementationTrace& trace, int blocks);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_TRACE_CHECK_H_
