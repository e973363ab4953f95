#ifndef PLUMBLINE_WORKER_H3_PLANNED_MEMORY_H_
#define PLUMBLINE_WORKER_H3_PLANNED_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "worker/h3/composition.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"
#include "worker/h3/plan.h"

namespace plumbline::h3 {

// The bytes of `device` that an executor of these takes, weights aside. Allocates nothing. Errors
// as MakePlan's, but never that memory is short.
absl::StatusOr<int64_t> PlannedBytes(const Graph& graph, const ResolvedComposition& composition,
                                     const Registry& registry, const DeviceWeights& weights,
                                     Device& device, const TapSink* sink, PlanOptions options);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PLANNED_MEMORY_H_
