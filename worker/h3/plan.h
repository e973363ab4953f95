// A graph under a composition, with every call made ready and every byte of memory placed: running
// it allocates nothing.
#ifndef PLUMBLINE_WORKER_H3_PLAN_H_
#define PLUMBLINE_WORKER_H3_PLAN_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "worker/h3/arena.h"
#include "worker/h3/composition.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

struct PlanOptions {
  RowCounts rows;
  int64_t batch = 1;
  bool backward = false;
  // Keep the activations of one segment at a time; run a segment's forward again, from what is
  // persistent, before its backward.
  bool recompute = false;
  // Null: chained, every node reads what the nodes before it wrote. Otherwise isolated: every node
  // reads this source's values and, backward, its gradients. Graph inputs and upstream gradients
  // are the execution's own in either case. Must outlive the plan.
  const TensorSource* isolated_from = nullptr;
  std::vector<OperationFault> faults;
  // As in ExecutionContext.
  bool guarded = true;
};

constexpr size_t PrecisionIndex(Precision precision) {
  return precision == Precision::kFloat32 ? 0 : 1;
}

// The memory of one value. Readers see it in their own precision's type; `visible` has one view
// for each precision, the same view where the types agree.
struct ValuePlan {
  Tensor stored;
  std::array<Tensor, 2> visible;  // by PrecisionIndex
  // The gradient reaching the value, in the stored type, as this execution computes it.
  Tensor grad;
  // What a node's backward reads as the gradient of its output: `grad`, or what was fed; in the
  // type of the producing node.
  Tensor grad_output;
};

// What happens to the gradient that one input slot produces.
struct GradientPlan {
  // Where the operation writes; null where no gradient flows.
  Tensor written;
  // Not null: `written` is converted into this view next (readers of another precision).
  Tensor converted;
  // Not null: the contribution (`written` or `converted`) is then added to this view, the sum of
  // those before it.
  Tensor sum;
};

struct NodePlan {
  std::shared_ptr<const Operation> operation;
  Precision precision = Precision::kMixed;
  std::vector<Tensor> inputs;
  std::vector<Tensor> parameters;
  std::vector<Tensor> grad_inputs;
  std::vector<Tensor> grad_parameters;
  std::vector<GradientPlan> gradients;  // by input slot
  void* saved = nullptr;
  // Null when only a fused operation that covers the node uses it.
  Tensor output;
  bool tap_forward = false;
  bool tap_gradient = false;
  std::vector<bool> tap_parameters;
  // Graph inputs whose gradient is complete once this node has run backward, and is wanted.
  std::vector<ValueId> completed_inputs;
};

// Nodes [begin, begin + count) run in one go.
struct StepPlan {
  NodeId begin = 0;
  int count = 1;
  const FusedRegistration* fused = nullptr;  // null for a single node
};

struct Plan {
  const Graph* graph = nullptr;
  const ResolvedComposition* composition = nullptr;
  PlanOptions options;
  std::vector<ValuePlan> values;
  std::vector<NodePlan> nodes;
  std::vector<StepPlan> steps;  // in execution order
  std::vector<NodeTrace> trace;
  DeviceBuffer workspace;

  // Persistent values and their gradients; values that pass from one segment to the next alone,
  // where no backward will ask for them again, by parity; activations and saved state, or, where
  // there is no backward, what a later step of the segment still reads; gradients within a segment;
  // gradients that pass from one segment to the one before it, by parity.
  Arena persistent;
  std::array<Arena, 2> passing_values;
  Arena activations;
  Arena gradients;
  std::array<Arena, 2> passing_gradients;

  // The type of a value for an operation of `precision`.
  static DType TypeFor(const Value& value, Precision precision);
  // A view of a value's shape, without data.
  Tensor Shaped(ValueId id, DType dtype) const;
  // A reader's part of a view of the whole value.
  static Tensor Part(const Tensor& whole, const Use& use);

  // Sets the views of every node from those of the values.
  void BindCalls();
  ForwardCall MakeForwardCall(NodeId id) const;
  BackwardCall MakeBackwardCall(NodeId id) const;
};

// `graph`, `composition` and `registry` must outlive the plan. INVALID_ARGUMENT when an operation
// does not support its shapes; RESOURCE_EXHAUSTED when the device's memory is too small.
absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const Graph& graph,
                                               const ResolvedComposition& composition,
                                               const Registry& registry,
                                               const DeviceWeights& weights, Device& device,
                                               const TapSink* sink, PlanOptions options);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PLAN_H_
