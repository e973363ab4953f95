#ifndef PLUMBLINE_WORKER_JOBS_IMPLEMENTATION_TRACE_H_
#define PLUMBLINE_WORKER_JOBS_IMPLEMENTATION_TRACE_H_

#include <vector>

#include "proto/plumbline/v1/identity.pb.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"

namespace plumbline::jobs {

// What ran for every node of a graph, for reports: nodes by what was requested and what ran, a role
// that all blocks share as "block.*/NODE". A node counts as executed when its forward ran and, with
// `backward`, its backward where a gradient reaches it.
v1::ImplementationTrace MakeImplementationTrace(const h3::Graph& graph,
                                                const std::vector<h3::NodeTrace>& traces,
                                                bool backward);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_IMPLEMENTATION_TRACE_H_
