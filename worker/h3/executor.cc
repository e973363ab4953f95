#include "worker/h3/executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

std::string ShapeText(const Tensor& tensor) {
  return absl::StrCat("(", tensor.batch, ", ", tensor.rows, ", ", tensor.width, ")");
}

bool Fits(const Tensor& from, const Tensor& to) {
  return from.rows == to.rows && from.width == to.width &&
         (from.batch == to.batch || from.batch == 1);
}

}  // namespace

Executor::Executor(std::unique_ptr<Plan> plan, DeviceWeights& weights, Device& device,
                   TapSink* sink)
    : plan_(std::move(plan)),
      graph_(*plan_->graph),
      weights_(weights),
      device_(device),
      sink_(sink),
      context_(device.Context()),
      recorded_(&device) {
  context_.guarded = plan_->options.guarded;
  context_.workspace =
      absl::MakeSpan(static_cast<uint8_t*>(plan_->workspace.data()), plan_->workspace.bytes());
  for (const StepPlan& step : plan_->steps)
    calls_.reserve(std::max<size_t>(calls_.capacity(), step.count));
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Graph& graph,
                                                           const ResolvedComposition& composition,
                                                           const Registry& registry,
                                                           DeviceWeights& weights, Device& device,
                                                           TapSink* sink, PlanOptions options) {
  PLUMBLINE_ASSIGN_OR_RETURN(
      std::unique_ptr<Plan> plan,
      MakePlan(graph, composition, registry, weights, device, sink, std::move(options)));
  return std::unique_ptr<Executor>(new Executor(std::move(plan), weights, device, sink));
}

absl::Status Executor::SetInput(absl::string_view name, const Tensor& tensor) {
  PLUMBLINE_ASSIGN_OR_RETURN(const ValueId id, graph_.FindValue(name));
  ValuePlan& value = plan_->values[id];
  if (graph_.values()[id].producer != kNoNode) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is computed, not an input"));
  }
  if (!Fits(tensor, value.stored)) {
    return FieldError(name, absl::StrCat("has shape ", ShapeText(tensor)), ShapeText(value.stored));
  }
  PLUMBLINE_RETURN_IF_ERROR(device_.Convert(context_, tensor, value.stored));
  return MakeVisible(id);
}

absl::Status Executor::SetUpstream(absl::string_view output, const Tensor& tensor) {
  PLUMBLINE_ASSIGN_OR_RETURN(const ValueId id, graph_.FindValue(output));
  const ValuePlan& value = plan_->values[id];
  if (value.grad.IsNull()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", output, "' takes no gradient in this plan"));
  }
  if (!Fits(tensor, value.grad)) {
    return FieldError(absl::StrCat(output, ".grad"), absl::StrCat("has shape ", ShapeText(tensor)),
                      ShapeText(value.grad));
  }
  return device_.Convert(context_, tensor, value.grad);
}

absl::Status Executor::Run() {
  const int segments = static_cast<int>(graph_.segments().size());
  for (int segment = 0; segment < segments; ++segment) {
    PLUMBLINE_RETURN_IF_ERROR(weights_.Load(graph_, segment));
    PLUMBLINE_RETURN_IF_ERROR(Forward(segment));
  }
  if (!plan_->options.backward) return absl::OkStatus();
  for (int segment = segments - 1; segment >= 0; --segment) {
    PLUMBLINE_RETURN_IF_ERROR(weights_.Load(graph_, segment));
    PLUMBLINE_RETURN_IF_ERROR(Backward(segment));
  }
  return absl::OkStatus();
}

absl::Status Executor::Forward(int segment) { return Compute(segment, /*tapped=*/true); }

absl::Status Executor::Compute(int segment, bool tapped) {
  PLUMBLINE_RETURN_IF_ERROR(BindParameters(segment));
  const auto enqueue = [&]() -> absl::Status {
    for (const StepPlan& step : plan_->steps) {
      if (graph_.nodes()[step.begin].segment != segment) continue;
      PLUMBLINE_RETURN_IF_ERROR(RunStep(step, tapped));
    }
    return absl::OkStatus();
  };
  PLUMBLINE_RETURN_IF_ERROR(RunSegment(segment, RecordedSegments::Work::kForward, enqueue));
  activations_of_ = segment;
  return absl::OkStatus();
}

bool Executor::IsTapped(int segment, RecordedSegments::Work work) const {
  for (NodeId id = graph_.SegmentBegin(segment); id < graph_.SegmentEnd(segment); ++id) {
    const NodePlan& node = plan_->nodes[id];
    if (work == RecordedSegments::Work::kForward) {
      if (node.tap_forward) return true;
      continue;
    }
    if (node.tap_gradient || !node.completed_inputs.empty()) return true;
    if (std::find(node.tap_parameters.begin(), node.tap_parameters.end(), true) !=
        node.tap_parameters.end()) {
      return true;
    }
  }
  return false;
}

absl::Status Executor::RunSegment(int segment, RecordedSegments::Work work,
                                  absl::FunctionRef<absl::Status()> enqueue) {
  // A sink looks at tensors while they are computed, a source of fed ones may change, and guards
  // look at memory after every call.
  if (plan_->options.isolated_from != nullptr || plan_->options.guarded ||
      IsTapped(segment, work) || weights_.IsPrefetching()) {
    return enqueue();
  }
  std::vector<const void*> memory;
  for (NodeId id = graph_.SegmentBegin(segment); id < graph_.SegmentEnd(segment); ++id) {
    for (const Tensor& parameter : plan_->nodes[id].parameters) memory.push_back(parameter.data);
  }
  return recorded_.Run(segment, work, std::move(memory), enqueue);
}

absl::Status Executor::BindParameters(int segment) {
  for (NodeId id = graph_.SegmentBegin(segment); id < graph_.SegmentEnd(segment); ++id) {
    const Node& node = graph_.nodes()[id];
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      PLUMBLINE_ASSIGN_OR_RETURN(plan_->nodes[id].parameters[i], weights_.Find(node.parameters[i]));
    }
  }
  return absl::OkStatus();
}

// Puts the source's tensor where readers of the value see it.
absl::Status Executor::Feed(ValueId id) {
  const Value& value = graph_.values()[id];
  if (value.producer == kNoNode) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor fed, plan_->options.isolated_from->Find(value.name));
  const Tensor* previous = nullptr;
  for (const Tensor& visible : plan_->values[id].visible) {
    if (visible.IsNull() || (previous != nullptr && previous->data == visible.data)) continue;
    previous = &visible;
    if (!Fits(fed, visible)) {
      return FieldError(value.name, absl::StrCat("fed with shape ", ShapeText(fed)),
                        ShapeText(visible));
    }
    PLUMBLINE_RETURN_IF_ERROR(device_.Convert(context_, fed, visible));
  }
  return absl::OkStatus();
}

absl::Status Executor::FeedGradient(ValueId id) {
  const ValuePlan& value = plan_->values[id];
  if (value.grad_output.data == value.grad.data) return absl::OkStatus();
  const std::string name = absl::StrCat(graph_.values()[id].name, ".grad");
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor fed, plan_->options.isolated_from->Find(name));
  if (!Fits(fed, value.grad_output)) {
    return FieldError(name, absl::StrCat("fed with shape ", ShapeText(fed)),
                      ShapeText(value.grad_output));
  }
  return device_.Convert(context_, fed, value.grad_output);
}

// Readers of another precision see a converted copy.
absl::Status Executor::MakeVisible(ValueId id) {
  const ValuePlan& value = plan_->values[id];
  for (const Tensor& visible : value.visible) {
    if (visible.IsNull() || visible.data == value.stored.data) continue;
    PLUMBLINE_RETURN_IF_ERROR(device_.Convert(context_, value.stored, visible));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunStep(const StepPlan& step, bool tapped) {
  const bool isolated = plan_->options.isolated_from != nullptr;
  calls_.clear();
  for (NodeId id = step.begin; id < step.begin + step.count; ++id) {
    const Node& node = graph_.nodes()[id];
    if (isolated) {
      for (const Use& use : node.inputs) {
        // Within a fused step nodes read what the step computes.
        if (graph_.values()[use.value].producer >= step.begin) continue;
        PLUMBLINE_RETURN_IF_ERROR(Feed(use.value));
      }
    }
    calls_.push_back(plan_->MakeForwardCall(id));
  }
  context_.node = graph_.nodes()[step.begin].name;
  const absl::Status done =
      step.fused != nullptr ? step.fused->operation->Forward(context_, calls_)
                            : plan_->nodes[step.begin].operation->Forward(context_, calls_.front());
  if (!done.ok()) return AnnotateStatus(done, graph_.nodes()[step.begin].name);

  for (NodeId id = step.begin; id < step.begin + step.count; ++id) {
    const Node& node = graph_.nodes()[id];
    const NodePlan& plan = plan_->nodes[id];
    plan_->trace[id].executed_forward = true;
    if (!plan.output.IsNull() && !isolated) PLUMBLINE_RETURN_IF_ERROR(MakeVisible(node.output));
    if (tapped && plan.tap_forward) {
      PLUMBLINE_RETURN_IF_ERROR(Emit(node.name, TapKind::kForward, id, plan.output));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::Backward(int segment) {
  if (plan_->options.recompute && activations_of_ != segment) {
    PLUMBLINE_RETURN_IF_ERROR(Compute(segment, /*tapped=*/false));
  }
  PLUMBLINE_RETURN_IF_ERROR(BindParameters(segment));
  return RunSegment(segment, RecordedSegments::Work::kBackward,
                    [&] { return ComputeBackward(segment); });
}

absl::Status Executor::ComputeBackward(int segment) {
  for (NodeId id = graph_.SegmentEnd(segment) - 1; id >= graph_.SegmentBegin(segment); --id) {
    if (graph_.values()[graph_.nodes()[id].output].differentiable) {
      PLUMBLINE_RETURN_IF_ERROR(RunBackward(id));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::RunBackward(NodeId id) {
  const Node& node = graph_.nodes()[id];
  const NodePlan& plan = plan_->nodes[id];
  const ValuePlan& output = plan_->values[node.output];
  if (plan.tap_gradient) {
    PLUMBLINE_RETURN_IF_ERROR(
        Emit(absl::StrCat(node.name, ".grad"), TapKind::kGradient, id, output.grad));
  }
  if (plan_->options.isolated_from != nullptr) {
    for (const Use& use : node.inputs) PLUMBLINE_RETURN_IF_ERROR(Feed(use.value));
    PLUMBLINE_RETURN_IF_ERROR(FeedGradient(node.output));
  }
  context_.node = node.name;
  const absl::Status done = plan.operation->Backward(context_, plan_->MakeBackwardCall(id));
  if (!done.ok()) return AnnotateStatus(done, absl::StrCat(node.name, " backward"));
  plan_->trace[id].executed_backward = true;
  for (const GradientPlan& gradient : plan.gradients) {
    PLUMBLINE_RETURN_IF_ERROR(Accumulate(gradient));
  }

  for (size_t i = 0; i < node.parameters.size(); ++i) {
    if (!plan.tap_parameters[i]) continue;
    PLUMBLINE_RETURN_IF_ERROR(Emit(absl::StrCat("parameter.", node.parameters[i]),
                                   TapKind::kParameterGradient, id, plan.grad_parameters[i]));
  }
  for (ValueId input : plan.completed_inputs) {
    PLUMBLINE_RETURN_IF_ERROR(Emit(absl::StrCat(graph_.values()[input].name, ".grad"),
                                   TapKind::kInputGradient, kNoNode, plan_->values[input].grad));
  }
  return absl::OkStatus();
}

absl::Status Executor::Accumulate(const GradientPlan& gradient) {
  Tensor contribution = gradient.written;
  if (!gradient.converted.IsNull()) {
    PLUMBLINE_RETURN_IF_ERROR(device_.Convert(context_, gradient.written, gradient.converted));
    contribution = gradient.converted;
  }
  if (gradient.sum.IsNull()) return absl::OkStatus();
  const Tensor terms[] = {gradient.sum, contribution};
  ForwardCall sum;
  sum.inputs = terms;
  sum.output = gradient.sum;
  return plan_->composition->grad_sum->operation->Forward(context_, sum);
}

absl::StatusOr<DType> Executor::TapType(absl::string_view name, TapKind kind) const {
  if (kind == TapKind::kParameterGradient) {
    absl::string_view parameter = name;
    absl::ConsumePrefix(&parameter, "parameter.");
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      const std::vector<std::string>& names = graph_.nodes()[i].parameters;
      for (size_t j = 0; j < plan_->nodes[i].grad_parameters.size(); ++j) {
        if (names[j] == parameter) return plan_->nodes[i].grad_parameters[j].dtype;
      }
    }
    return absl::NotFoundError(absl::StrCat("the plan has no '", name, "'"));
  }
  if (kind != TapKind::kForward) absl::ConsumeSuffix(&name, ".grad");
  PLUMBLINE_ASSIGN_OR_RETURN(const ValueId id, graph_.FindValue(name));
  const ValuePlan& value = plan_->values[id];
  return kind == TapKind::kForward ? value.stored.dtype : value.grad.dtype;
}

absl::Status Executor::Emit(const std::string& name, TapKind kind, NodeId node,
                            const Tensor& tensor) {
  return sink_->OnTensor({name, kind, node, tensor});
}

}  // namespace plumbline::h3
