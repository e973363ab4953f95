#include "kernels/plugin/operation.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "kernels/plugin/call.h"
#include "kernels/plugin/guards.h"

namespace plumbline::plugin {
namespace {

Precision PrecisionOf(const Kernel& kernel) {
  return kernel.description->type == PLUMBLINE_F32 ? Precision::kFloat32 : Precision::kMixed;
}

std::string NodesOf(const Kernel& kernel) {
  return absl::StrJoin(kernel.nodes, ", ", [](std::string* out, const PluginNode* node) {
    absl::StrAppend(out, node->name);
  });
}

class KernelOperation final : public Operation {
 public:
  KernelOperation(std::shared_ptr<const Library> library, const Kernel& kernel,
                  const GuardMemory& memory)
      : library_(std::move(library)), kernel_(kernel), memory_(memory) {}

  Precision precision() const override { return PrecisionOf(kernel_); }
  bool has_backward() const override { return kernel_.description->backward != nullptr; }

  absl::Status Check(const ForwardCall& call) const override {
    const NodeView view(node(), call);
    return CheckConstraints(*library_, kernel_, absl::MakeConstSpan(&view, 1));
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return SavedBytesOf(*library_, kernel_, NodeView(node(), call));
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return GuardedBytes(NodeView(node(), call), SavedBytes(call), context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return GuardedBytes(NodeView(node(), call), SavedBytes(ForwardOf(call)), context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Run(context, NodeView(node(), call), call.saved == nullptr ? 0 : SavedBytes(call));
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    return Run(context, NodeView(node(), call), SavedBytes(ForwardOf(call)));
  }

 private:
  const PluginNode& node() const { return *kernel_.nodes[0]; }

  static ForwardCall ForwardOf(const BackwardCall& call) {
    return {call.inputs, call.parameters, call.attributes, call.output, nullptr};
  }

  size_t GuardedBytes(NodeView view, size_t saved_bytes, ExecutionContext context) const {
    view.saved_bytes = saved_bytes;
    context.workspace = {};
    Guards guards(*library_, memory_, context);
    ExecutionContext inner;
    const size_t scratch =
        WorkspaceBytesOf(*library_, kernel_, context, absl::MakeConstSpan(&view, 1));
    guards.Enter(absl::MakeSpan(&view, 1), scratch, &inner).IgnoreError();  // it only counts
    return guards.bytes();
  }

  absl::Status Run(const ExecutionContext& context, NodeView view, size_t saved_bytes) const {
    PLUMBLINE_RETURN_IF_ERROR(CheckConstraints(*library_, kernel_, absl::MakeConstSpan(&view, 1)));
    view.saved_bytes = saved_bytes;
    if (!context.guarded) {
      return Invoke(*library_, kernel_, context, absl::MakeConstSpan(&view, 1));
    }
    const size_t scratch =
        WorkspaceBytesOf(*library_, kernel_, context, absl::MakeConstSpan(&view, 1));
    Guards guards(*library_, memory_, context);
    ExecutionContext inner;
    PLUMBLINE_RETURN_IF_ERROR(guards.Enter(absl::MakeSpan(&view, 1), scratch, &inner));
    PLUMBLINE_RETURN_IF_ERROR(Invoke(*library_, kernel_, inner, absl::MakeConstSpan(&view, 1)));
    PLUMBLINE_RETURN_IF_ERROR(guards.Check());
    return guards.CopyOut();
  }

  const std::shared_ptr<const Library> library_;
  const Kernel kernel_;
  const GuardMemory& memory_;
};

class KernelFusedOperation final : public FusedOperation {
 public:
  KernelFusedOperation(std::shared_ptr<const Library> library, const Kernel& kernel,
                       const GuardMemory& memory)
      : library_(std::move(library)), kernel_(kernel), memory_(memory) {}

  absl::Status Check(absl::Span<const ForwardCall> calls) const override {
    return CheckConstraints(*library_, kernel_, ViewsOf(calls));
  }

  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                        const ExecutionContext& context) const override {
    Views views = ViewsOf(calls);
    ExecutionContext counting = context;
    counting.workspace = {};
    Guards guards(*library_, memory_, counting);
    ExecutionContext inner;
    const size_t scratch = WorkspaceBytesOf(*library_, kernel_, counting, views);
    // They only count.
    guards.Enter(absl::MakeSpan(views), scratch, &inner).IgnoreError();
    guards.EnterAgain(&views.back()).IgnoreError();
    return guards.bytes();
  }

  absl::Status Forward(const ExecutionContext& context,
                       absl::Span<const ForwardCall> calls) const override {
    Views views = ViewsOf(calls);
    PLUMBLINE_RETURN_IF_ERROR(CheckConstraints(*library_, kernel_, views));
    if (!context.guarded) return Invoke(*library_, kernel_, context, views);
    const size_t scratch = WorkspaceBytesOf(*library_, kernel_, context, views);
    Guards guards(*library_, memory_, context);
    ExecutionContext inner;
    PLUMBLINE_RETURN_IF_ERROR(guards.Enter(absl::MakeSpan(views), scratch, &inner));
    PLUMBLINE_RETURN_IF_ERROR(Invoke(*library_, kernel_, inner, views));
    PLUMBLINE_RETURN_IF_ERROR(guards.Check());
    PLUMBLINE_RETURN_IF_ERROR(RunUntapped(inner, &views, &guards));
    return guards.CopyOut();
  }

 private:
  using Views = absl::InlinedVector<NodeView, 2>;

  Views ViewsOf(absl::Span<const ForwardCall> calls) const {
    Views views;
    for (size_t i = 0; i < calls.size(); ++i) views.emplace_back(*kernel_.nodes[i], calls[i]);
    return views;
  }

  // What is certified with its intermediate outputs must be what runs without them.
  absl::Status RunUntapped(const ExecutionContext& context, Views* views, Guards* guards) const {
    bool tapped = false;
    for (size_t i = 0; i + 1 < views->size(); ++i) {
      Tensor& output = (*views)[i].output;
      tapped |= !output.IsNull();
      for (size_t later = i + 1; later < views->size(); ++later) {
        for (Tensor& input : (*views)[later].inputs) {
          if (!input.IsNull() && input.data == output.data) input.data = nullptr;
        }
      }
      output.data = nullptr;
    }
    if (!tapped) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(guards->EnterAgain(&views->back()));
    PLUMBLINE_RETURN_IF_ERROR(Invoke(*library_, kernel_, context, *views));
    return guards->CheckAgain("when its intermediate outputs are not asked for");
  }

  const std::shared_ptr<const Library> library_;
  const Kernel kernel_;
  const GuardMemory& memory_;
};

class CoveredOperation final : public Operation {
 public:
  CoveredOperation(std::shared_ptr<const Library> library, const Kernel& kernel)
      : library_(std::move(library)), kernel_(kernel) {}

  Precision precision() const override { return PrecisionOf(kernel_); }
  bool has_backward() const override { return false; }
  bool only_fused() const override { return true; }

  absl::Status Check(const ForwardCall& call) const override {
    return FieldError("composition",
                      absl::StrCat(library_->implementation(), " computes ", NodesOf(kernel_),
                                   " together, and was not given all of them"),
                      absl::StrCat("+", library_->implementation(), ":",
                                   absl::StrJoin(kernel_.nodes, ",",
                                                 [](std::string* out, const PluginNode* node) {
                                                   absl::StrAppend(out, node->role);
                                                 })));
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Check(call);
  }

 private:
  const std::shared_ptr<const Library> library_;
  const Kernel kernel_;
};

}  // namespace

std::shared_ptr<const Operation> MakeOperation(std::shared_ptr<const Library> library,
                                               const Kernel& kernel, const GuardMemory& memory) {
  return std::make_shared<KernelOperation>(std::move(library), kernel, memory);
}

std::shared_ptr<const FusedOperation> MakeFusedOperation(std::shared_ptr<const Library> library,
                                                         const Kernel& kernel,
                                                         const GuardMemory& memory) {
  return std::make_shared<KernelFusedOperation>(std::move(library), kernel, memory);
}

std::shared_ptr<const Operation> MakeCoveredOperation(std::shared_ptr<const Library> library,
                                                      const Kernel& kernel) {
  return std::make_shared<CoveredOperation>(std::move(library), kernel);
}

}  // namespace plumbline::plugin
