#ifndef PLUMBLINE_WORKER_H3_EXECUTOR_H_
#define PLUMBLINE_WORKER_H3_EXECUTOR_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/plan.h"
#include "worker/h3/recorded_segments.h"

namespace plumbline::h3 {

// Runs a graph under one composition: the only place where nodes are executed. Every depth of
// validation is one or several of these over the same graph, which differ in their composition and
// options. Several executors that advance segment by segment over one DeviceWeights are a lockstep.
//
// Not thread-safe. The graph, composition, registry, weights, device and sink must outlive it.
class Executor {
 public:
  // `sink` may be null. See MakePlan for errors.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Graph& graph,
                                                          const ResolvedComposition& composition,
                                                          const Registry& registry,
                                                          DeviceWeights& weights, Device& device,
                                                          TapSink* sink, PlanOptions options);

  // Copies a graph input from device memory, widening or rounding to the type that the composition
  // stores. A batch of 1 is replicated. INVALID_ARGUMENT names the input and both shapes.
  absl::Status SetInput(absl::string_view name, const Tensor& tensor);
  // The same for the gradient reaching a graph output.
  absl::Status SetUpstream(absl::string_view output, const Tensor& tensor);

  // Forward over all segments and, if the plan has one, backward over all.
  absl::Status Run();

  // One segment, in order, for lockstep: forward from the first to the last, then backward from the
  // last to the first. The weights of the segment must be loaded.
  absl::Status Forward(int segment);
  absl::Status Backward(int segment);

  // The type of what is handed to a sink under this name. NOT_FOUND if the plan has no such tensor.
  absl::StatusOr<DType> TapType(absl::string_view name, TapKind kind) const;

  // What ran for each node so far.
  const std::vector<NodeTrace>& trace() const { return plan_->trace; }

 private:
  Executor(std::unique_ptr<Plan> plan, DeviceWeights& weights, Device& device, TapSink* sink);

  absl::Status Compute(int segment, bool tapped);
  absl::Status ComputeBackward(int segment);
  // Does the work of a segment whose parameters are bound; again and again from a record where
  // nobody looks on.
  absl::Status RunSegment(int segment, RecordedSegments::Work work,
                          absl::FunctionRef<absl::Status()> enqueue);
  bool IsTapped(int segment, RecordedSegments::Work work) const;
  absl::Status BindParameters(int segment);
  absl::Status Feed(ValueId value);
  absl::Status FeedGradient(ValueId value);
  absl::Status RunStep(const StepPlan& step, bool tapped);
  absl::Status RunBackward(NodeId id);
  absl::Status Accumulate(const GradientPlan& gradient);
  absl::Status MakeVisible(ValueId value);
  absl::Status Emit(const std::string& name, TapKind kind, NodeId node, const Tensor& tensor);

  const std::unique_ptr<Plan> plan_;
  const Graph& graph_;
  DeviceWeights& weights_;
  Device& device_;
  TapSink* const sink_;
  ExecutionContext context_;
  int activations_of_ = -1;  // the segment whose activations are in memory
  std::vector<ForwardCall> calls_;
  RecordedSegments recorded_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_EXECUTOR_H_
