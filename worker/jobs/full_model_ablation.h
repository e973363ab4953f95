#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_ABLATION_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_ABLATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/plumbline/v1/full_model.pb.h"
#include "worker/drift/faults.h"
#include "worker/h3/composition.h"
#include "worker/h3/graph.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/full_model_setup.h"

namespace plumbline::jobs {

// The groups that an ablation replaces, one at a time: "attention", "gemms", ... "all".
absl::Span<const absl::string_view> AblationGroups();

// Puts into `side`, whose composition is `ablated`, what is left of a fault of the candidate when
// some of its nodes run the provider's implementation: a fault of a node goes with the node, one of
// weights or inputs when all nodes that read what it changes are replaced.
absl::Status KeepFaultOfOwnNodes(const h3::Graph& graph, const h3::ResolvedComposition& candidate,
                                 const h3::ResolvedComposition& ablated, const drift::Fault& fault,
                                 const h3::WeightSource& weights, FullModelSide* side);

// A row of the table, for a group that ran: `errors` are the ablated composition's against golden
// by inventory index, `judged` the candidate's judged report, `trace` the ablated composition's.
absl::StatusOr<v1::AblationRow> MakeAblationRow(const AblatedSide& ablated, const v1::Rule& rule,
                                                const v1::FullModelReport& judged,
                                                const std::vector<v1::TensorComparison>& errors,
                                                const v1::ImplementationTrace& trace);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_ABLATION_H_
