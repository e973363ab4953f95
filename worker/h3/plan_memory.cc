#include "worker/h3/plan_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"

namespace plumbline::h3 {
namespace {

class MemoryPlacer {
 public:
  MemoryPlacer(Plan& plan, Device& device) : plan_(plan), graph_(*plan.graph), device_(device) {}

  absl::Status Place() {
    PlaceActivations();
    if (plan_.options.backward) PlaceGradients();
    return Allocate();
  }

 private:
  const Value& value(ValueId id) const { return graph_.values()[id]; }
  bool isolated() const { return plan_.options.isolated_from != nullptr; }

  // Whether a node's output is read, tapped or handed out by anything but its own fused step.
  bool IsOutputNeeded(NodeId id, const StepPlan& step) const {
    if (step.fused == nullptr || plan_.options.backward || plan_.nodes[id].tap_forward) return true;
    const ValueId output = graph_.nodes()[id].output;
    if (graph_.IsPersistent(output)) return true;
    const std::vector<Reader>& readers = graph_.readers(output);
    return std::any_of(readers.begin(), readers.end(), [&](const Reader& reader) {
      return reader.node < step.begin || reader.node >= step.begin + step.count;
    });
  }

  void PlaceActivations() {
    int passing_from = -1;
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const ValueId id = static_cast<ValueId>(i);
      if (!graph_.IsPersistent(id)) continue;
      if (!PassesToNextSegment(id)) {
        PlaceValue(id, plan_.persistent);
        continue;
      }
      const int from = graph_.nodes()[value(id).producer].segment;
      Arena& arena = plan_.passing_values[from % 2];
      if (from != passing_from) arena.Restart();
      passing_from = from;
      PlaceValue(id, arena);
    }
    int segment = 0;
    const bool keep_all = plan_.options.backward && !plan_.options.recompute;
    for (const StepPlan& step : plan_.steps) {
      if (graph_.nodes()[step.begin].segment != segment) {
        segment = graph_.nodes()[step.begin].segment;
        if (!keep_all) plan_.activations.Restart();
      }
      for (int i = 0; i < step.count; ++i) {
        const NodeId id = step.begin + i;
        NodePlan& node = plan_.nodes[id];
        const ValueId output = graph_.nodes()[id].output;
        if (!graph_.IsPersistent(output) && IsOutputNeeded(id, step)) {
          PlaceValue(output, plan_.activations);
        }
        if (!plan_.options.backward) continue;
        const size_t saved = node.operation->SavedBytes(plan_.MakeForwardCall(id));
        if (saved > 0) plan_.activations.Reserve(&node.saved, saved);
      }
      if (!plan_.options.backward && !isolated()) ReleaseRead(step);
    }
  }

  // Gives back the places of activations that no step behind this one reads.
  void ReleaseRead(const StepPlan& step) {
    const NodeId end = step.begin + step.count;
    for (NodeId id = step.begin; id < end; ++id) {
      const Node& node = graph_.nodes()[id];
      ReleaseIfRead(node.output, end);
      for (const Use& use : node.inputs) ReleaseIfRead(use.value, end);
    }
  }

  void ReleaseIfRead(ValueId id, NodeId end) {
    if (graph_.IsPersistent(id)) return;
    const std::vector<Reader>& readers = graph_.readers(id);
    if (!readers.empty() && readers.back().node >= end) return;
    ValuePlan& v = plan_.values[id];
    plan_.activations.Release(&v.stored);
    for (const Tensor& visible : v.visible) plan_.activations.Release(&visible);
  }

  // Whether a persistent value may go when the segment after its own has run.
  bool PassesToNextSegment(ValueId id) const {
    const NodeId producer = value(id).producer;
    if (plan_.options.backward || producer == kNoNode || IsGraphOutput(id)) return false;
    const std::vector<Reader>& readers = graph_.readers(id);
    return std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
      return graph_.nodes()[reader.node].segment <= graph_.nodes()[producer].segment + 1;
    });
  }

  bool IsReadBy(ValueId id, Precision precision) const {
    const std::vector<Reader>& readers = graph_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](const Reader& reader) {
      return plan_.nodes[reader.node].precision == precision;
    });
  }

  // The stored view, and one for each type in which readers see the value.
  void PlaceValue(ValueId id, Arena& arena) {
    ValuePlan& v = plan_.values[id];
    arena.Reserve(&v.stored);
    const bool fed = isolated() && value(id).producer != kNoNode;
    Tensor& full = v.visible[PrecisionIndex(Precision::kFloat32)];
    Tensor& mixed = v.visible[PrecisionIndex(Precision::kMixed)];
    for (Precision precision : {Precision::kFloat32, Precision::kMixed}) {
      Tensor& visible = v.visible[PrecisionIndex(precision)];
      if (&visible == &mixed && full.dtype == mixed.dtype) {
        aliases_.emplace_back(&mixed, &full);
      } else if (!fed && visible.dtype == v.stored.dtype) {
        aliases_.emplace_back(&visible, &v.stored);
      } else if (IsReadBy(id, precision) || full.dtype == mixed.dtype) {
        arena.Reserve(&visible);
      }
    }
  }

  bool NeedsGradient(ValueId id) const {
    if (!value(id).differentiable) return false;
    return !graph_.readers(id).empty() || IsGraphOutput(id);
  }

  bool IsGraphOutput(ValueId id) const {
    return std::find(graph_.outputs().begin(), graph_.outputs().end(), id) !=
           graph_.outputs().end();
  }

  // Where the gradient reaching a value lives: as long as there is a segment that still adds to it
  // or reads it.
  Arena& GradientArena(ValueId id) {
    if (!graph_.IsPersistent(id)) return plan_.gradients;
    const NodeId producer = value(id).producer;
    if (producer == kNoNode || IsGraphOutput(id)) return plan_.persistent;
    const int segment = graph_.nodes()[producer].segment;
    for (const Reader& reader : graph_.readers(id)) {
      if (graph_.nodes()[reader.node].segment != segment + 1) return plan_.persistent;
    }
    return plan_.passing_gradients[segment % 2];
  }

  void PlaceGradients() {
    // Values whose gradient lives longer than a segment come first, each with an arena of its own
    // lifetime; then segment by segment, from the last, what the segment needs alone.
    int restarted_for = -1;
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const ValueId id = static_cast<ValueId>(i);
      if (!NeedsGradient(id) || !graph_.IsPersistent(id)) continue;
      Arena& arena = GradientArena(id);
      if (&arena != &plan_.persistent &&
          graph_.nodes()[value(id).producer].segment != restarted_for) {
        restarted_for = graph_.nodes()[value(id).producer].segment;
        arena.Restart();
      }
      PlaceGradient(id, arena);
    }
    const int segments = static_cast<int>(graph_.segments().size());
    for (int segment = segments - 1; segment >= 0; --segment) {
      plan_.gradients.Restart();
      for (NodeId id = graph_.SegmentEnd(segment) - 1; id >= graph_.SegmentBegin(segment); --id) {
        const ValueId output = graph_.nodes()[id].output;
        if (NeedsGradient(output) && !graph_.IsPersistent(output)) {
          PlaceGradient(output, plan_.gradients);
        }
        for (Tensor& gradient : plan_.nodes[id].grad_parameters) plan_.gradients.Reserve(&gradient);
      }
      for (NodeId id = graph_.SegmentEnd(segment) - 1; id >= graph_.SegmentBegin(segment); --id) {
        PlaceContributions(id);
      }
    }
  }

  void PlaceGradient(ValueId id, Arena& arena) {
    ValuePlan& v = plan_.values[id];
    arena.Reserve(&v.grad);
    if (isolated() && value(id).producer != kNoNode && !IsGraphOutput(id)) {
      arena.Reserve(&v.grad_output);
    } else {
      aliases_.emplace_back(&v.grad_output, &v.grad);
    }
  }

  // Decides for each input slot of a node where its gradient goes: straight into the value's
  // gradient for the first (in backward order) and for slices, otherwise to a scratch view that is
  // added.
  void PlaceContributions(NodeId id) {
    const Node& node = graph_.nodes()[id];
    NodePlan& plan = plan_.nodes[id];
    if (!value(node.output).differentiable) return;
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Use& use = node.inputs[slot];
      if (!NeedsGradient(use.value)) continue;
      GradientPlan& gradient = plan.gradients[slot];
      const DType wanted = Plan::TypeFor(value(use.value), plan.precision);
      const bool same_type = wanted == plan_.values[use.value].stored.dtype;
      const bool sliced = graph_.IsReadInSlices(use.value);
      const Reader& last = graph_.readers(use.value).back();
      const bool first_contribution =
          last.node == id && last.slot == static_cast<int>(slot) && !IsGraphOutput(use.value);
      const bool direct = sliced || first_contribution;
      if (same_type && direct) {
        parts_.push_back({&gradient.written, use.value, use});
        continue;
      }
      gradient.written = Plan::Part(plan_.Shaped(use.value, wanted), use);
      MakeDense(gradient.written);
      plan_.gradients.Reserve(&gradient.written);
      if (!same_type) {
        if (direct) {
          parts_.push_back({&gradient.converted, use.value, use});
        } else {
          gradient.converted = plan_.values[use.value].stored;
          plan_.gradients.Reserve(&gradient.converted);
        }
      }
      if (!direct) parts_.push_back({&gradient.sum, use.value, use});
    }
  }

  static void MakeDense(Tensor& tensor) {
    tensor = Tensor::Dense(tensor.data, tensor.dtype, tensor.batch, tensor.rows, tensor.width);
  }

  absl::Status Allocate() {
    PLUMBLINE_RETURN_IF_ERROR(plan_.persistent.Allocate(device_));
    for (Arena& arena : plan_.passing_values) {
      PLUMBLINE_RETURN_IF_ERROR(arena.Allocate(device_));
    }
    PLUMBLINE_RETURN_IF_ERROR(plan_.activations.Allocate(device_));
    PLUMBLINE_RETURN_IF_ERROR(plan_.gradients.Allocate(device_));
    for (Arena& arena : plan_.passing_gradients) {
      PLUMBLINE_RETURN_IF_ERROR(arena.Allocate(device_));
    }
    for (const auto& [alias, target] : aliases_) *alias = *target;
    for (const GradientPart& part : parts_) {
      *part.view = Plan::Part(plan_.values[part.value].grad, part.use);
    }
    plan_.BindCalls();
    return AllocateWorkspace();
  }

  absl::Status AllocateWorkspace() {
    const ExecutionContext context = device_.Context();
    size_t bytes = 0;
    for (const StepPlan& step : plan_.steps) {
      std::vector<ForwardCall> calls;
      for (int i = 0; i < step.count; ++i) {
        const NodeId id = step.begin + i;
        const NodePlan& node = plan_.nodes[id];
        calls.push_back(plan_.MakeForwardCall(id));
        bytes = std::max(bytes, node.operation->ForwardWorkspaceBytes(calls.back(), context));
        if (!plan_.options.backward) continue;
        bytes = std::max(
            bytes, node.operation->BackwardWorkspaceBytes(plan_.MakeBackwardCall(id), context));
      }
      if (step.fused == nullptr) continue;
      const absl::Status supported = step.fused->operation->Check(calls);
      if (!supported.ok()) return AnnotateStatus(supported, step.fused->name);
      bytes = std::max(bytes, step.fused->operation->WorkspaceBytes(calls, context));
    }
    if (bytes == 0) return absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(plan_.workspace, device_.Allocate(bytes));
    return absl::OkStatus();
  }

  struct GradientPart {
    Tensor* view;
    ValueId value;
    Use use;
  };

  Plan& plan_;
  const Graph& graph_;
  Device& device_;
  // Views that are others' or parts of others', set when memory is there; in order, so that an
  // alias of an alias works.
  std::vector<std::pair<Tensor*, const Tensor*>> aliases_;
  std::vector<GradientPart> parts_;
};

}  // namespace

absl::Status PlaceMemory(Plan& plan, Device& device) { return MemoryPlacer(plan, device).Place(); }

}  // namespace plumbline::h3
