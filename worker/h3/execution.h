// What an execution reads, and what it hands out while it runs.
#ifndef PLUMBLINE_WORKER_H3_EXECUTION_H_
#define PLUMBLINE_WORKER_H3_EXECUTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/registry.h"
#include "kernels/tensor.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

// Tensors by name, in the memory of the device that an execution runs on: values
// ("block.0/q_proj"), gradients reaching them ("block.0/q_proj.grad"), graph inputs. A view stays
// valid as long as the source.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // NOT_FOUND names what is missing.
  virtual absl::StatusOr<Tensor> Find(absl::string_view name) const = 0;
};

enum class TapKind {
  kForward,            // a node's output; `name` is the node's name
  kGradient,           // the gradient reaching a node's output; "NODE.grad"
  kInputGradient,      // the gradient of a graph input; "INPUT.grad"
  kParameterGradient,  // "parameter.NAME"
};

struct Tap {
  std::string name;
  TapKind kind;
  NodeId node;    // kNoNode for an input's gradient; for a parameter the last node that reads it
  Tensor tensor;  // on the device, valid during the call
};

// Receives tensors while an execution runs: forward in node order; then for each node from last to
// first its gradient, then those of its parameters; a graph input's gradient when the last node
// that reads it has run backward.
class TapSink {
 public:
  virtual ~TapSink() = default;
  // Asked once for each name when the plan is made. Only what is wanted is handed over, and only
  // what is wanted keeps a fused operation from leaving an output unwritten.
  virtual bool Wants(absl::string_view name, TapKind kind) const = 0;
  // An error stops the execution.
  virtual absl::Status OnTensor(const Tap& tap) = 0;
};

// What an execution ran for one node.
struct NodeTrace {
  std::string node;
  std::string requested;  // implementation name
  std::string actual;     // the same, or the fused operation's name
  std::string owner;
  BindingStatus status = BindingStatus::kBound;
  // As the implementation's registration says.
  bool promises_repeatable = false;
  bool promises_row_invariant = false;
  bool executed_forward = false;
  bool executed_backward = false;
};

// A change of one node's operation, for negative controls.
struct OperationFault {
  std::string node;  // a node's full name
  // Given the composition's operation, returns the faulty one that runs in its place.
  std::function<std::shared_ptr<const Operation>(std::shared_ptr<const Operation>)> decorate;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_EXECUTION_H_
