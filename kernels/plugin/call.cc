#include "kernels/plugin/call.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/plugin/current_call.h"
#include "kernels/plugin/fault.h"

namespace plumbline::plugin {
namespace {

// More is a mistake of the plug-in's, and no sum of such sizes overflows.
constexpr size_t kMaxBytes = size_t{1} << 44;
constexpr size_t kMaxMessageBytes = 400;

int32_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return PLUMBLINE_BF16;
    case DType::kF32:
      return PLUMBLINE_F32;
    case DType::kI64:
      return PLUMBLINE_I64;
    case DType::kF64:
      return PLUMBLINE_F64;
    default:
      return 0;
  }
}

plumbline_tensor ToC(const Tensor& tensor) {
  return {tensor.data,       TypeOf(tensor.dtype), 0, tensor.batch, tensor.rows, tensor.width,
          tensor.row_stride, tensor.batch_stride};
}

template <typename To>
void AppendToC(const Tensors& tensors, To* to) {
  for (const Tensor& tensor : tensors) to->push_back(ToC(tensor));
}

void ParallelFor(void* threads, int64_t count, int64_t grain,
                 void (*body)(void* arg, int64_t first, int64_t last), void* arg) {
  if (count <= 0) return;
  static_cast<ThreadPool*>(threads)->ParallelFor(
      0, count, std::max<int64_t>(grain, 1),
      [&](int64_t first, int64_t last) { body(arg, first, last); });
}

// What a plug-in says, fit for a message.
std::string TextOf(const char* message) {
  if (message == nullptr) return "it says nothing more";
  std::string text(message, strnlen(message, kMaxMessageBytes));
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

std::string ShapeText(const Tensor& tensor) {
  return absl::StrCat("(", tensor.batch, ", ", tensor.rows, ", ", tensor.width, ")");
}

// Holds one tensor of a call against what a kernel declares.
class ConstraintCheck {
 public:
  ConstraintCheck(const Library& library, const Kernel& kernel)
      : library_(library), constraints_(kernel.description->constraints) {}

  // `of_rows`: its rows are those that the kernel works on, not those of a table or a parameter.
  absl::Status Tensor(const std::string& name, const plumbline::Tensor& tensor, bool of_rows) {
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat(library_.implementation(), ": ", name, " ", ShapeText(tensor), ": ", what));
    };
    if (of_rows && constraints_.max_rows > 0 && tensor.rows > constraints_.max_rows) {
      return refuse(absl::StrCat("the kernel takes at most ", constraints_.max_rows, " rows"));
    }
    if (of_rows && constraints_.rows_multiple_of > 0 &&
        tensor.rows % constraints_.rows_multiple_of != 0) {
      return refuse(
          absl::StrCat("the kernel takes a multiple of ", constraints_.rows_multiple_of, " rows"));
    }
    if (tensor.dtype != DType::kBF16 && tensor.dtype != DType::kF32) return absl::OkStatus();
    if (constraints_.max_width > 0 && tensor.width > constraints_.max_width) {
      return refuse(absl::StrCat("the kernel takes a width of at most ", constraints_.max_width));
    }
    if (constraints_.width_multiple_of > 0 && tensor.width % constraints_.width_multiple_of != 0) {
      return refuse(absl::StrCat("the kernel takes a width that is a multiple of ",
                                 constraints_.width_multiple_of));
    }
    if (constraints_.alignment_bytes > 0) {
      const int64_t alignment = constraints_.alignment_bytes;
      const int64_t stride_bytes =
          tensor.row_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
      if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(alignment) != 0 ||
          (tensor.rows > 1 && stride_bytes % alignment != 0)) {
        return refuse(
            absl::StrCat("the kernel takes rows that are aligned to ", alignment, " bytes"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Node(const NodeView& view) {
    const int64_t head_width = view.attributes.head_width;
    if (constraints_.head_width > 0 && head_width > 0 && head_width != constraints_.head_width) {
      return absl::InvalidArgumentError(absl::StrCat(library_.implementation(), ": heads are ",
                                                     head_width, " wide; the kernel takes ",
                                                     constraints_.head_width));
    }
    for (size_t i = 0; i < view.inputs.size(); ++i) {
      const bool of_rows = view.inputs[i].rows == view.output.rows;
      PLUMBLINE_RETURN_IF_ERROR(Tensor(InputName(view.node->op, i), view.inputs[i], of_rows));
    }
    return Tensor("the output", view.output, true);
  }

 private:
  const Library& library_;
  const plumbline_constraints& constraints_;
};

}  // namespace

NodeView::NodeView(const PluginNode& node, const ForwardCall& call)
    : node(&node),
      inputs(call.inputs.begin(), call.inputs.end()),
      parameters(call.parameters.begin(), call.parameters.end()),
      attributes(call.attributes),
      output(call.output),
      saved(call.saved) {}

NodeView::NodeView(const PluginNode& node, const BackwardCall& call)
    : node(&node),
      inputs(call.inputs.begin(), call.inputs.end()),
      parameters(call.parameters.begin(), call.parameters.end()),
      attributes(call.attributes),
      output(call.output),
      // The kernel gets it as const in effect: guards compare it with what it was.
      saved(const_cast<void*>(call.saved)),
      backward(true),
      grad_output(call.grad_output),
      grad_inputs(call.grad_inputs.begin(), call.grad_inputs.end()),
      grad_parameters(call.grad_parameters.begin(), call.grad_parameters.end()) {}

CCall::CCall(absl::Span<const NodeView> nodes, const ExecutionContext& context) {
  nodes_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeView& view = nodes[i];
    Node& node = nodes_[i];
    AppendToC(view.inputs, &node.inputs);
    AppendToC(view.parameters, &node.parameters);
    AppendToC(view.grad_inputs, &node.grad_inputs);
    AppendToC(view.grad_parameters, &node.grad_parameters);
    node.grad_output = ToC(view.grad_output);

    plumbline_node_call call = {};
    call.node = view.node->name.data();  // a literal
    call.inputs = node.inputs.data();
    call.parameters = node.parameters.data();
    call.num_inputs = static_cast<int32_t>(node.inputs.size());
    call.num_parameters = static_cast<int32_t>(node.parameters.size());
    call.attributes = {view.attributes.head_width, view.attributes.rotary_frequencies,
                       view.attributes.rotary_theta, view.attributes.epsilon};
    call.output = ToC(view.output);
    call.saved = view.saved;
    if (view.backward) {
      call.grad_output = &node.grad_output;
      call.grad_inputs = node.grad_inputs.data();
      call.grad_parameters = node.grad_parameters.data();
    }
    node_calls_.push_back(call);
  }
  call_.struct_bytes = sizeof(call_);
  call_.num_nodes = static_cast<int32_t>(node_calls_.size());
  call_.nodes = node_calls_.data();
  call_.workspace = context.workspace.data();
  call_.workspace_bytes = context.workspace.size();
  call_.stream = context.stream;
  if (context.threads != nullptr) {
    call_.parallel_for = &ParallelFor;
    call_.threads = context.threads;
  }
  call_.message = message_;
  call_.message_bytes = sizeof(message_);
}

absl::Status Invoke(const Library& library, const Kernel& kernel, const ExecutionContext& context,
                    absl::Span<const NodeView> nodes) {
  const bool backward = nodes[0].backward;
  const CCall call(nodes, context);
  plumbline_status status;
  {
    const CurrentCall current(library.implementation(),
                              context.node.empty() ? kernel.nodes[0]->name : context.node,
                              backward);
    status = backward ? kernel.description->backward(call.get())
                      : kernel.description->forward(call.get());
  }
  if (status.code == 0) return absl::OkStatus();
  return Fault(library.implementation(),
               absl::StrCat("failed with code ", status.code, ": ", TextOf(status.message)),
               kFailedReason);
}

absl::Status CheckConstraints(const Library& library, const Kernel& kernel,
                              absl::Span<const NodeView> nodes) {
  ConstraintCheck check(library, kernel);
  for (const NodeView& node : nodes) PLUMBLINE_RETURN_IF_ERROR(check.Node(node));
  if (kernel.description->check == nullptr) return absl::OkStatus();
  const CCall call(nodes, ExecutionContext());
  plumbline_status status;
  {
    const CurrentCall current(library.implementation(), kernel.nodes[0]->name, false);
    status = kernel.description->check(call.get());
  }
  if (status.code == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(library.implementation(), " does not take this call: ", TextOf(status.message)));
}

size_t SavedBytesOf(const Library& library, const Kernel& kernel, const NodeView& node) {
  if (kernel.description->saved_bytes == nullptr) return 0;
  const CCall call(absl::MakeConstSpan(&node, 1), ExecutionContext());
  const CurrentCall current(library.implementation(), kernel.nodes[0]->name, false);
  return std::min(kernel.description->saved_bytes(call.get()), kMaxBytes);
}

size_t WorkspaceBytesOf(const Library& library, const Kernel& kernel,
                        const ExecutionContext& context, absl::Span<const NodeView> nodes) {
  if (kernel.description->workspace_bytes == nullptr) return 0;
  const CCall call(nodes, context);
  const bool backward = nodes[0].backward;
  const CurrentCall current(library.implementation(), kernel.nodes[0]->name, backward);
  return std::min(kernel.description->workspace_bytes(call.get(), backward ? 1 : 0), kMaxBytes);
}

}  // namespace plumbline::plugin
