#include "worker/h3/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/h3/plan_memory.h"

namespace plumbline::h3 {
namespace {

// Decides what runs, in what steps, and which tensors are handed out.
class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, const Registry& registry, const DeviceWeights& weights, DeviceKind device,
              const TapSink* sink)
      : plan_(plan),
        graph_(*plan.graph),
        registry_(registry),
        weights_(weights),
        device_(device),
        sink_(sink) {}

  absl::Status Build() {
    PLUMBLINE_RETURN_IF_ERROR(ChooseOperations());
    ChooseTaps();
    ChooseSteps();
    PLUMBLINE_RETURN_IF_ERROR(ShapeParameters());
    ShapeValues();
    // With null views, to ask for sizes; they are bound again when memory is behind them.
    plan_.BindCalls();
    return CheckShapes();
  }

 private:
  const Value& value(ValueId id) const { return graph_.values()[id]; }

  Precision ProducerPrecision(ValueId id) const {
    const NodeId producer = value(id).producer;
    return producer == kNoNode ? plan_.composition->base_precision
                               : plan_.nodes[producer].precision;
  }

  absl::Status ChooseOperations() {
    plan_.nodes.resize(graph_.nodes().size());
    plan_.trace.resize(graph_.nodes().size());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const OperationRegistration& registration = *plan_.composition->nodes[i];
      NodePlan& node = plan_.nodes[i];
      node.operation = registration.operation;
      node.precision = registration.operation->precision();
      NodeTrace& trace = plan_.trace[i];
      trace.node = graph_.nodes()[i].name;
      trace.requested = registration.implementation;
      trace.actual = registration.implementation;
      trace.owner = registration.owner;
      trace.status = registration.status;
      trace.promises_repeatable = registration.promises_repeatable;
      trace.promises_row_invariant = registration.promises_row_invariant;
    }
    for (const OperationFault& fault : plan_.options.faults) {
      PLUMBLINE_ASSIGN_OR_RETURN(const NodeId id, graph_.FindNode(fault.node));
      NodePlan& node = plan_.nodes[id];
      node.operation = fault.decorate(std::move(node.operation));
      faulty_.push_back(id);
    }
    return absl::OkStatus();
  }

  bool Wants(const std::string& name, TapKind kind) const {
    return sink_ != nullptr && sink_->Wants(name, kind);
  }

  void ChooseTaps() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const Node& node = graph_.nodes()[i];
      NodePlan& plan = plan_.nodes[i];
      plan.tap_forward = Wants(node.name, TapKind::kForward);
      if (!plan_.options.backward) continue;
      plan.tap_gradient = value(node.output).differentiable &&
                          Wants(absl::StrCat(node.name, ".grad"), TapKind::kGradient);
      for (const std::string& parameter : node.parameters) {
        plan.tap_parameters.push_back(
            Wants(absl::StrCat("parameter.", parameter), TapKind::kParameterGradient));
      }
    }
    if (!plan_.options.backward) return;
    for (size_t id = 0; id < graph_.values().size(); ++id) {
      const Value& input = graph_.values()[id];
      if (input.producer != kNoNode || !input.differentiable || graph_.readers(id).empty())
        continue;
      if (!Wants(absl::StrCat(input.name, ".grad"), TapKind::kInputGradient)) continue;
      plan_.nodes[graph_.readers(id).front().node].completed_inputs.push_back(
          static_cast<ValueId>(id));
    }
  }

  // Whether `fused` may stand for the nodes from `begin` on.
  bool Fits(const FusedRegistration& fused, NodeId begin) const {
    const size_t count = fused.nodes.size();
    if (begin + count > graph_.nodes().size()) return false;
    for (size_t i = 0; i < count; ++i) {
      const NodeId id = begin + static_cast<NodeId>(i);
      const Node& node = graph_.nodes()[id];
      if (node.role != fused.nodes[i].role || node.op != fused.nodes[i].op) return false;
      if (node.segment != graph_.nodes()[begin].segment) return false;
      if (plan_.composition->nodes[id]->implementation != fused.implementation) return false;
      if (std::find(faulty_.begin(), faulty_.end(), id) != faulty_.end()) return false;
    }
    return true;
  }

  // Isolated, every node runs by itself, unless it has no operation of its own.
  bool MayBeFused(NodeId begin, size_t count) const {
    if (plan_.options.isolated_from == nullptr) return true;
    return std::any_of(plan_.nodes.begin() + begin, plan_.nodes.begin() + begin + count,
                       [](const NodePlan& node) { return node.operation->only_fused(); });
  }

  void ChooseSteps() {
    for (NodeId begin = 0; begin < static_cast<NodeId>(graph_.nodes().size());) {
      StepPlan step;
      step.begin = begin;
      const std::string& implementation = plan_.composition->nodes[begin]->implementation;
      for (const FusedRegistration* fused : registry_.Fused(implementation, device_)) {
        if (!Fits(*fused, begin) || !MayBeFused(begin, fused->nodes.size())) continue;
        step.fused = fused;
        step.count = static_cast<int>(fused->nodes.size());
        for (int i = 0; i < step.count; ++i) plan_.trace[begin + i].actual = fused->name;
        break;
      }
      plan_.steps.push_back(step);
      begin += step.count;
    }
  }

  absl::Status ShapeParameters() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      NodePlan& node = plan_.nodes[i];
      for (const std::string& name : graph_.nodes()[i].parameters) {
        PLUMBLINE_ASSIGN_OR_RETURN(Tensor shape, weights_.Shape(name));
        node.parameters.push_back(shape);
        if (!plan_.options.backward) continue;
        if (node.precision == Precision::kFloat32) shape.dtype = DType::kF32;
        node.grad_parameters.push_back(shape);
      }
    }
    return absl::OkStatus();
  }

  void ShapeValues() {
    plan_.values.resize(graph_.values().size());
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const ValueId id = static_cast<ValueId>(i);
      ValuePlan& v = plan_.values[i];
      v.stored = plan_.Shaped(id, Plan::TypeFor(value(id), ProducerPrecision(id)));
      for (Precision precision : {Precision::kFloat32, Precision::kMixed}) {
        v.visible[PrecisionIndex(precision)] =
            plan_.Shaped(id, Plan::TypeFor(value(id), precision));
      }
      v.grad = v.stored;
      v.grad_output = v.stored;
    }
    for (NodePlan& node : plan_.nodes) node.inputs.clear();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      plan_.nodes[i].inputs.resize(graph_.nodes()[i].inputs.size());
      plan_.nodes[i].gradients.resize(graph_.nodes()[i].inputs.size());
      plan_.nodes[i].grad_inputs.resize(graph_.nodes()[i].inputs.size());
    }
  }

  absl::Status CheckShapes() {
    for (const StepPlan& step : plan_.steps) {
      for (int i = 0; i < step.count; ++i) {
        const NodeId id = step.begin + i;
        PLUMBLINE_RETURN_IF_ERROR(CheckBackward(id));
        if (step.fused != nullptr && plan_.nodes[id].operation->only_fused()) continue;
        const absl::Status supported = plan_.nodes[id].operation->Check(plan_.MakeForwardCall(id));
        if (!supported.ok()) return AnnotateStatus(supported, graph_.nodes()[id].name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckBackward(NodeId id) const {
    const Node& node = graph_.nodes()[id];
    if (!plan_.options.backward || !value(node.output).differentiable ||
        plan_.nodes[id].operation->has_backward()) {
      return absl::OkStatus();
    }
    return FieldError("composition",
                      absl::StrCat(plan_.trace[id].requested, " has no backward of ", node.name),
                      "the forward alone, or an implementation that has one");
  }

  Plan& plan_;
  const Graph& graph_;
  const Registry& registry_;
  const DeviceWeights& weights_;
  const DeviceKind device_;
  const TapSink* const sink_;
  std::vector<NodeId> faulty_;
};

}  // namespace

DType Plan::TypeFor(const Value& value, Precision precision) {
  return precision == Precision::kFloat32 && value.dtype == DType::kBF16 ? DType::kF32
                                                                         : value.dtype;
}

Tensor Plan::Shaped(ValueId id, DType dtype) const {
  const Value& value = graph->values()[id];
  return Tensor::Dense(nullptr, dtype, value.batched ? options.batch : 1,
                       options.rows.Of(value.rows) * value.row_factor + value.extra_rows,
                       value.width);
}

Tensor Plan::Part(const Tensor& whole, const Use& use) {
  if (use.IsWhole()) return whole;
  return whole.SplitRows(use.split_rows).Columns(use.first_column, use.columns);
}

void Plan::BindCalls() {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph->nodes()[i];
    NodePlan& plan = nodes[i];
    plan.output = values[node.output].stored;
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Use& use = node.inputs[slot];
      plan.inputs[slot] = Part(values[use.value].visible[PrecisionIndex(plan.precision)], use);
      plan.grad_inputs[slot] = plan.gradients[slot].written;
    }
  }
  // Isolated, what is visible of a value was fed; within a fused step nodes read what it computes.
  for (const StepPlan& step : steps) {
    if (options.isolated_from == nullptr || step.fused == nullptr) continue;
    for (NodeId id = step.begin; id < step.begin + step.count; ++id) {
      const Node& node = graph->nodes()[id];
      for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
        const Use& use = node.inputs[slot];
        if (graph->values()[use.value].producer < step.begin) continue;
        nodes[id].inputs[slot] = Part(values[use.value].stored, use);
      }
    }
  }
}

ForwardCall Plan::MakeForwardCall(NodeId id) const {
  const NodePlan& node = nodes[id];
  return {node.inputs, node.parameters, graph->nodes()[id].attributes, node.output, node.saved};
}

BackwardCall Plan::MakeBackwardCall(NodeId id) const {
  const NodePlan& node = nodes[id];
  BackwardCall call;
  call.inputs = node.inputs;
  call.parameters = node.parameters;
  call.attributes = graph->nodes()[id].attributes;
  call.output = node.output;
  call.saved = node.saved;
  call.grad_output = values[graph->nodes()[id].output].grad_output;
  call.grad_inputs = node.grad_inputs;
  call.grad_parameters = node.grad_parameters;
  return call;
}

absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const Graph& graph,
                                               const ResolvedComposition& composition,
                                               const Registry& registry,
                                               const DeviceWeights& weights, Device& device,
                                               const TapSink* sink, PlanOptions options) {
  auto plan = std::make_unique<Plan>();
  plan->graph = &graph;
  plan->composition = &composition;
  plan->options = std::move(options);
  PLUMBLINE_RETURN_IF_ERROR(PlanBuilder(*plan, registry, weights, device.kind(), sink).Build());
  PLUMBLINE_RETURN_IF_ERROR(PlaceMemory(*plan, device));
  return plan;
}

}  // namespace plumbline::h3
