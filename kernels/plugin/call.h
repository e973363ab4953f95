// A call of a kernel, as the graph makes it and as the C interface has it. Internal to the
// plug-ins.
#ifndef PLUMBLINE_KERNELS_PLUGIN_CALL_H_
#define PLUMBLINE_KERNELS_PLUGIN_CALL_H_

#include <cstddef>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "kernels/plugin/library.h"
#include "kernels/plugin/plumbline_plugin.h"

namespace plumbline::plugin {

using Tensors = absl::InlinedVector<Tensor, 6>;

// One node of a call. Gradients are those of a backward, and empty in a forward.
struct NodeView {
  NodeView(const PluginNode& node, const ForwardCall& call);
  NodeView(const PluginNode& node, const BackwardCall& call);

  const PluginNode* node;
  Tensors inputs, parameters;
  Attributes attributes;
  Tensor output;
  void* saved = nullptr;
  size_t saved_bytes = 0;
  bool backward = false;
  Tensor grad_output;
  Tensors grad_inputs, grad_parameters;
};

// The nodes in the form of plumbline_plugin.h, which points into this object.
class CCall {
 public:
  // What `nodes` and `context` point to must outlive the call.
  CCall(absl::Span<const NodeView> nodes, const ExecutionContext& context);
  CCall(const CCall&) = delete;
  CCall& operator=(const CCall&) = delete;

  const plumbline_call* get() const { return &call_; }

 private:
  struct Node {
    absl::InlinedVector<plumbline_tensor, 6> inputs, parameters, grad_inputs, grad_parameters;
    plumbline_tensor grad_output;
  };

  absl::InlinedVector<Node, 2> nodes_;
  absl::InlinedVector<plumbline_node_call, 2> node_calls_;
  plumbline_call call_ = {};
  char message_[512] = {};
};

// Runs the kernel. FAILED_PRECONDITION with kFailedReason where it says that it failed.
absl::Status Invoke(const Library& library, const Kernel& kernel, const ExecutionContext& context,
                    absl::Span<const NodeView> nodes);

// INVALID_ARGUMENT: what of the call, whose tensors may be null, the kernel's constraints or its
// own check refuse.
absl::Status CheckConstraints(const Library& library, const Kernel& kernel,
                              absl::Span<const NodeView> nodes);

size_t SavedBytesOf(const Library& library, const Kernel& kernel, const NodeView& node);
size_t WorkspaceBytesOf(const Library& library, const Kernel& kernel,
                        const ExecutionContext& context, absl::Span<const NodeView> nodes);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_CALL_H_
